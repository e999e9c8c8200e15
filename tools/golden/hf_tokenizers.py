#!/usr/bin/env python3
"""Small tokenizer.json files, one or more for every component, with what Hugging Face tokenizers
makes of random texts. Writes tests/golden/hf_tokenizers.jsonl: one object per line with the name,
the tokenizer, texts with their ids (plain, with the post-processor's tokens, with special tokens as
text), and ids with their text. The first line holds the model that most of them share, for which
they say "observer". Texts that the reference itself fails on are left out.

    python3 tools/golden/hf_tokenizers.py [--texts N] [--seed S] [--output PATH]

Needs the package tokenizers (0.23)."""
import argparse
import json
import pathlib
import random

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLE = ("the quick brown fox jumps over the lazy dog and the other dogs were not amused by it "
          "Hello World don't we'll 123 4567 foo_bar caf\u00e9 na\u00efve \u00fcber stra\u00dfe ").split(" ")
BYTES = {f"<0x{b:02X}>": b for b in range(256)}


# A model that shows the text of every piece and where it ends: each byte is a token, and the mark
# of a piece's end is made of bytes too.
def observer():
    return {"type": "BPE", "vocab": BYTES, "merges": [], "byte_fallback": True,
            "end_of_word_suffix": "|"}


def base(**parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": observer(), **parts}


def added(content, **flags):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def sequence(kind, *parts):
    names = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}
    return {"type": "Sequence", names[kind]: list(parts)}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def normalizer_configs():
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": None, "lowercase": True}
    replace = lambda pattern, content: {"type": "Replace", "pattern": pattern, "content": content}
    found = [{"type": t} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt",
                                   "ByteLevel")]
    found += [{"type": "Strip", "strip_left": a, "strip_right": b}
              for a, b in ((True, True), (True, False), (False, True))]
    found += [bert, {**bert, "lowercase": False}, {**bert, "clean_text": False},
              {**bert, "strip_accents": False, "handle_chinese_chars": False}]
    found += [replace({"String": " "}, "\u2581"), replace({"Regex": " {2,}"}, " "),
              replace({"Regex": "\\s+"}, "_"), replace({"Regex": "[\\r\\n]"}, ""),
              replace({"String": "ab"}, ""), {"type": "Prepend", "prepend": "\u2581"},
              sequence("normalizer", {"type": "NFD"}, {"type": "Lowercase"},
                       {"type": "StripAccents"})]
    return {f"normalizer {n['type']} {i}": base(normalizer=n) for i, n in enumerate(found)}


def pre_tokenizer_configs():
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always",
                 "split": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    digits = {"type": "Digits", "individual_digits": False}
    found = [byte_level, {**byte_level, "add_prefix_space": True},
             {**byte_level, "use_regex": False}, digits, {**digits, "individual_digits": True},
             {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
             {"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "FixedLength", "length": 3}]
    behaviors = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    found += [{"type": "Punctuation", "behavior": b} for b in behaviors]
    found += [split({"String": " "}, b, i) for b in behaviors for i in (False, True)]
    found += [split({"Regex": r}, "Isolated")
              for r in ("[0-9][0-9][0-9]", "\\d{1,3}", "\\p{N}", "\\s+", "[^\\s]+", "\\p{L}+",
                        " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+")]
    found += [{**metaspace, "prepend_scheme": s, "split": b}
              for s in ("always", "first", "never") for b in (True, False)]
    found += [sequence("pre_tokenizer", {"type": "Punctuation", "behavior": "Contiguous"},
                       byte_level, digits, split({"Regex": "[0-9][0-9][0-9]"}, "Isolated")),
              sequence("pre_tokenizer", {"type": "WhitespaceSplit"}, metaspace),
              sequence("pre_tokenizer", byte_level, byte_level),
              sequence("pre_tokenizer", split({"String": "a"}, "MergedWithNext"),
                       {**metaspace, "prepend_scheme": "first"})]
    return {f"pre_tokenizer {p['type']} {i}": base(pre_tokenizer=p) for i, p in enumerate(found)}


def added_token_configs():
    tokens = [added("<s>", special=True), added("</s>", special=True, lstrip=True),
              added("<mask>", special=True, lstrip=True, rstrip=True),
              added("word", single_word=True), added("Ab", normalized=True),
              added("\u00c9t", normalized=True), added("<s><s>"), added("   ", normalized=True),
              added("end", rstrip=True, single_word=True), added("dog", normalized=True)]
    scheme = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}
    prepend = sequence("normalizer", {"type": "Prepend", "prepend": "\u2581"},
                       {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})
    lower = sequence("normalizer", {"type": "NFD"}, {"type": "Lowercase"})
    return {f"added tokens {i}": base(added_tokens=tokens, **parts) for i, parts in enumerate([
        {}, {"normalizer": lower}, {"normalizer": prepend}, {"pre_tokenizer": scheme},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}},
        {"normalizer": {"type": "Nmt"}, "pre_tokenizer": scheme}])}


def post_processor_configs():
    template = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}},
                           {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                "pair": [],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [256, 257], "tokens": ["<s>", "x"]},
                                   "</s>": {"id": "</s>", "ids": [258], "tokens": ["</s>"]}}}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 258], "cls": ["<s>", 256],
               "trim_offsets": True, "add_prefix_space": False}
    bert = {"type": "BertProcessing", "sep": ["</s>", 258], "cls": ["<s>", 256]}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                  "use_regex": True}
    both = {"type": "Sequence", "processors": [byte_level, template]}
    tokens = [added(t, special=True) for t in ("<s>", "x", "</s>")]
    return {f"post_processor {p['type']}": base(post_processor=p, added_tokens=tokens)
            for p in (template, roberta, bert, byte_level, both)}


def trained(model, trainer, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    generator = random.Random(5)
    lines = [" ".join(generator.choice(SAMPLE) for _ in range(12)) for _ in range(200)]
    tokenizer.train_from_iterator(lines, trainer)
    return json.loads(tokenizer.to_str())


def model_configs():
    words = pre_tokenizers.WhitespaceSplit()
    quiet = {"show_progress": False}
    unk = {"special_tokens": ["[UNK]"], **quiet}
    bpe = trained(models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(vocab_size=120, **unk))
    suffix = trained(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
                     trainers.BpeTrainer(vocab_size=120, end_of_word_suffix="</w>", **unk), words)
    prefix = trained(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"),
                     trainers.BpeTrainer(vocab_size=120, continuing_subword_prefix="##", **unk),
                     words)
    found = {"bpe": bpe, "bpe suffix": suffix, "bpe prefix": prefix,
             "unigram": trained(models.Unigram(),
                                trainers.UnigramTrainer(vocab_size=100, unk_token="[UNK]", **unk),
                                pre_tokenizers.Metaspace()),
             "wordpiece": trained(models.WordPiece(unk_token="[UNK]"),
                                  trainers.WordPieceTrainer(vocab_size=100, **unk),
                                  pre_tokenizers.BertPreTokenizer()),
             "wordlevel": trained(models.WordLevel(unk_token="[UNK]"),
                                  trainers.WordLevelTrainer(**unk), words),
             "byte-level bpe": trained(
                 models.BPE(), trainers.BpeTrainer(
                     vocab_size=350, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **quiet),
                 pre_tokenizers.ByteLevel(add_prefix_space=False)),
             "byte-level bpe without some bytes": trained(
                 models.BPE(), trainers.BpeTrainer(vocab_size=120, **quiet),
                 pre_tokenizers.ByteLevel(add_prefix_space=True))}

    def variant(name, **changes):
        copy = json.loads(json.dumps(found[name]))
        copy["model"].update(changes)
        return copy

    some_bytes = {**bpe["model"]["vocab"]}
    for byte in range(0x80, 0xF0):
        some_bytes[f"<0x{byte:02X}>"] = len(some_bytes)
    meta = sequence("normalizer", {"type": "Prepend", "prepend": "\u2581"},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})
    llama = Tokenizer(models.BPE(unk_token="[UNK]", byte_fallback=True, fuse_unk=True))
    llama.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"),
                                             normalizers.Replace(" ", "\u2581")])
    llama.train_from_iterator([" ".join(SAMPLE)] * 3, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["[UNK]", *BYTES], show_progress=False))
    found.update({
        "bpe fused unknown": variant("bpe", fuse_unk=True),
        "bpe without unknown": variant("bpe", unk_token=None),
        "bpe whole words": variant("bpe suffix", ignore_merges=True),
        "bpe some bytes": variant("bpe", vocab=some_bytes, byte_fallback=True, fuse_unk=True),
        "byte-level bpe whole words": variant("byte-level bpe", ignore_merges=True),
        "bpe across words": json.loads(llama.to_str()),
        "bpe words": {**variant("bpe"), "normalizer": meta},
        "wordpiece short words": variant("wordpiece", max_input_chars_per_word=4)})
    old = json.loads(json.dumps(found["byte-level bpe"]))
    del old["model"]["type"]
    old["model"]["merges"] = [" ".join(m) for m in old["model"]["merges"]]
    found["old layout"] = old
    return {f"model {name}": config for name, config in found.items()}


def decoder_configs():
    vocab = {}
    for token in ["\u2581the", "\u2581", "a", "##b", "##", "c</w>", "</w>", "<0x41>", "<0xC3>",
                  "<0xA9>", "<0xE2>", "<0x+7>", "<0xag>", "\u0120x", "\u00e9", "\u00c3", "\u00a9", " ", ".",
                  "?", "n't", "'", "'m", "do not", "'s", "'ve", "<pad>", "|", "\u65e5", " the ", "",
                  "\u0120do", "\u0120\u0120", "\u00ef", "\u00bf", "HH", "H"]:
        vocab[token] = len(vocab)
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "a"}
    replace = lambda pattern, content: {"type": "Replace", "pattern": pattern, "content": content}
    metaspace = {"type": "Metaspace", "replacement": "\u2581"}
    strip = lambda c, start, stop: {"type": "Strip", "content": c, "start": start, "stop": stop}
    found = [None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
             {**metaspace, "prepend_scheme": "always"}, {**metaspace, "prepend_scheme": "never"},
             {**metaspace, "add_prefix_space": True}, {"type": "ByteFallback"}, {"type": "Fuse"},
             {"type": "WordPiece", "prefix": "##", "cleanup": True},
             {"type": "WordPiece", "prefix": "##", "cleanup": False},
             {"type": "BPEDecoder", "suffix": "</w>"}, strip("H", 1, 0), strip("\u2581", 2, 0),
             replace({"String": "\u2581"}, " "), replace({"Regex": "\\s+"}, "_"),
             {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
             sequence("decoder", replace({"String": "\u2581"}, " "), {"type": "ByteFallback"},
                      {"type": "Fuse"}, strip(" ", 1, 0))]
    return {f"decoder {d['type'] if d else None} {i}": base(model=model, decoder=d)
            for i, d in enumerate(found)}


def configs():
    return {**normalizer_configs(), **pre_tokenizer_configs(), **added_token_configs(),
            **post_processor_configs(), **model_configs(), **decoder_configs()}


def random_text(generator, contents):
    parts = [lambda: generator.choice(SAMPLE), lambda: " ", lambda: " " * generator.randint(1, 5),
             lambda: generator.choice("\n\t\r.,!?'\"-_$+<>|\u2581\u00a0\u3000\u200b\u0301\u3002\u0964\ufffd\u0000\u007f"),
             lambda: "".join(chr(generator.randint(*generator.choice(
                 [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x45F),
                  (0x5D0, 0x5EA), (0x900, 0x939), (0xE01, 0xE30), (0x1E00, 0x1EFF), (0x2000, 0x206F),
                  (0x20D0, 0x20DC), (0x2100, 0x212F), (0x2160, 0x216F), (0x3040, 0x3096),
                  (0x4E00, 0x4FFF), (0xAC00, 0xACFF), (0xFB00, 0xFB06), (0xFF01, 0xFF5E),
                  (0x1D400, 0x1D440), (0x1F600, 0x1F640), (0x1100, 0x1112), (0x1161, 0x1175)])))
                 for _ in range(generator.randint(1, 4))),
             lambda: "".join(generator.choice("0123456789\u00b2\u00bd\u0664") for _ in range(generator.randint(1, 7))),
             lambda: generator.choice(contents) if contents else "x",
             lambda: generator.choice(["\r\n", "a\u0301\u0323", "\u00c9t", "e\u0301T", "ABAb", "\u0130\u03a3",
                                       "\U0001F468\u200d\U0001F469", "\u2764\ufe0f", "word", "words end end "])]
    return "".join(generator.choice(parts)() for _ in range(generator.randint(0, 9)))


def answers(name, config, texts, generator):
    tokenizer = Tokenizer.from_str(json.dumps(config))
    contents = [t["content"] for t in config["added_tokens"]]
    cases = []
    for _ in range(texts):
        text = random_text(generator, contents)
        try:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
        except BaseException as failure:  # a Rust panic is not an Exception
            assert type(failure).__name__ == "PanicException", failure
            continue
        case = {"text": text, "ids": ids}
        if config["post_processor"]:
            case["added"] = tokenizer.encode(text).ids
        if contents:
            tokenizer.encode_special_tokens = True
            case["plain"] = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = False
        cases.append(case)
    decoded = []
    known = sorted(tokenizer.get_vocab(with_added_tokens=True).values())
    for case in cases if config["decoder"] is None else range(texts):
        ids = case["ids"] if config["decoder"] is None else [
            generator.choice(known) for _ in range(generator.randint(1, 6))]
        decoded.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False)})
    if not name.startswith(("decoder", "model")):
        decoded = []
    if name.startswith("decoder"):
        cases = []
    if config["model"] == observer():
        config = {**config, "model": "observer"}
    return {"name": name, "tokenizer": config, "encode": cases, "decode": decoded}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=ROOT / "tests/golden/hf_tokenizers.jsonl")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with open(options.output, "w", encoding="utf-8", newline="\n") as out:
        out.write(json.dumps({"observer": observer()}, separators=(",", ":")) + "\n")
        for name, config in configs().items():
            answer = answers(name, config, options.texts, generator)
            line = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
            out.write(line + "\n")


if __name__ == "__main__":
    main()
