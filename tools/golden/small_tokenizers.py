#!/usr/bin/env python3
"""Writes tests/golden/tokenizers: a small tokenizer of each kind that users bring, in the files they
bring it in, trained here on sentences of ours, and golden.json, what the program that each kind
comes from makes of the same texts: ids, ids with special tokens around, and the text of the ids.

    python3 tools/golden/small_tokenizers.py

Needs the packages tokenizers, sentencepiece and tiktoken (tools/oracle_requirements.txt)."""
import base64
import contextlib
import io
import json
import pathlib
import random
import tempfile

import sentencepiece
import tiktoken
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

from subword import RULES, WORDS, random_text

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/tokenizers"
SENTENCES = """The river was wide, and the boat was small; nobody wanted to be the first to row.
In 1987 the harbour froze, so 23 ships waited 114 days for the thaw (it came on 3 April).
She said: "Don't open it!" -- but he'd already opened it, hadn't he?
def area(width, height):\n    return width * height  # in square metres
Der Fluss war breit, und das Boot war klein; niemand wollte als Erster rudern.
Über den Brücken läuten Glocken, wenn der Nebel sich hebt und die Straße glänzt.
La rivière était large et le bateau petit ; personne n'osait ramer le premier.
El río era ancho y la barca pequeña: nadie quería remar primero, ¿verdad?
Река была широкой, а лодка маленькой; никто не хотел грести первым.
Ο ποταμός ήταν πλατύς και η βάρκα μικρή· κανείς δεν ήθελε να κωπηλατήσει.
川は広く、舟は小さかった。誰も最初に漕ぎたがらなかった。
河很宽，船很小，没有人愿意先划。
강은 넓고 배는 작았다. 아무도 먼저 노를 젓고 싶어 하지 않았다.
كان النهر واسعا والقارب صغيرا، ولم يرغب أحد في التجديف أولا.
नदी चौड़ी थी और नाव छोटी; कोई पहले खेना नहीं चाहता था।
The bell rang twice 🔔🔔 and everybody cheered 🎉 -- café, naïve, façade, ﬁne, e\u0301lan.
Prices: $4.50, €3,99, £12; ratio 7/8; 50 % off; e-mail: someone@example.org""".splitlines()
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"""
          r"""|\s*[\r\n]|\s+(?!\S)|\s+""")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus(seed=1):
    rng = random.Random(seed)
    for _ in range(600):
        yield rng.choice(SENTENCES)
        yield " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 12))) + rng.choice(".!?")


def write(name, text):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_json(name, value):
    return write(name, json.dumps(value, ensure_ascii=False, indent=0, sort_keys=True) + "\n")


def train_byte_bpe(size, **parts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = parts.get("split", pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.decoder = decoders.ByteLevel()
    if "normalizer" in parts:
        tokenizer.normalizer = parts["normalizer"]
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=parts.get("special", []))
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def hugging_face(tokenizer):
    return (lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            lambda text: tokenizer.encode(text).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False))


def sentence_piece(path, start, end):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return (model.encode, lambda text: start + model.encode(text) + end, model.decode)


def gpt2():
    tokenizer = train_byte_bpe(700, special=["<|endoftext|>"])
    model = json.loads(tokenizer.to_str())["model"]
    vocab = {token: at for at, token in enumerate(
        sorted((t for t in model["vocab"] if t != "<|endoftext|>"), key=model["vocab"].get))}
    vocab["<|endoftext|>"] = len(vocab)  # last, as in GPT-2's own vocabulary
    write_json("gpt2/vocab.json", vocab)
    lines = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    write("gpt2/merges.txt", "#version: 0.2\n" + "\n".join(lines) + "\n")
    tokenizer = Tokenizer(models.BPE.from_file(str(FOLDER / "gpt2/vocab.json"),
                                               str(FOLDER / "gpt2/merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return hugging_face(tokenizer)


def llama3():
    split = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = train_byte_bpe(700, split=split, normalizer=normalizers.NFC())
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    start = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B", special_tokens=[("<|begin|>", start)])
    write_json("llama3/tokenizer.json", json.loads(tokenizer.to_str()))
    write_json("llama3/tokenizer_config.json", {
        "bos_token": "<|begin|>", "eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"})
    return hugging_face(tokenizer)


def llama2_model():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=corpus(), model_writer=model, vocab_size=700, model_type="bpe",
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, character_coverage=0.98, minloglevel=2, num_threads=1)
    path = write("llama2/tokenizer.model", model.getvalue())
    write_json("llama2/tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>",
        "unk_token": "<unk>", "legacy": True, "tokenizer_class": "LlamaTokenizer"})
    return sentence_piece(path, [1], [])


def mistral():
    """The pieces and merges of the model above, as tokenizer.json has them."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / "llama2/tokenizer.model"))
    size = model.vocab_size()
    vocab = {model.id_to_piece(i): i for i in range(size)}
    merges = []
    for piece, at in vocab.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if at >= 259 and left in vocab and right in vocab:
                merges.append((at, vocab[left], vocab[right], left, right))
    merges = [(m[3], m[4]) for m in sorted(merges)]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    write_json("mistral/tokenizer.json", json.loads(tokenizer.to_str()))
    return hugging_face(tokenizer)


def t5():
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("rules.tsv").write_text(RULES)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=corpus(), model_writer=model, vocab_size=600, model_type="unigram",
            hard_vocab_limit=False, normalization_rule_tsv="rules.tsv", pad_id=0, eos_id=1,
            unk_id=2, bos_id=-1, minloglevel=2, num_threads=1)
    return sentence_piece(write("t5/spiece.model", model.getvalue()), [], [1])


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=special, show_progress=False))
    vocab = tokenizer.get_vocab()
    write("bert/vocab.txt", "".join(t + "\n" for t in sorted(vocab, key=vocab.get)))
    tokenizer = Tokenizer(models.WordPiece.from_file(str(FOLDER / "bert/vocab.txt"), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in special])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return hugging_face(tokenizer)


def tiktoken_ranks():
    alphabet = {c: b for b, c in byte_alphabet().items()}
    merges = (FOLDER / "gpt2/merges.txt").read_text().splitlines()[1:]
    tokens = [bytes([b]) for b in byte_alphabet()]
    tokens += [bytes(alphabet[c] for c in line.replace(" ", "")) for line in merges]
    ranks = {token: rank for rank, token in enumerate(dict.fromkeys(tokens))}
    write("tiktoken/ranks.tiktoken", "".join(
        f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    model = tiktoken.Encoding("small", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={})
    return (model.encode_ordinary, model.encode_ordinary,
            lambda ids: model.decode_bytes(ids).decode(errors="replace"))


def byte_alphabet():
    """The character that stands for each byte in GPT-2's files."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


def main():
    rng = random.Random(7)
    texts = SENTENCES + [random_text(rng) for _ in range(40)] + ["", " ", "  two  spaces ", "\n\n"]
    golden = {}
    for name, make in {"gpt2": gpt2, "llama3": llama3, "llama2": llama2_model, "mistral": mistral,
                       "t5": t5, "bert": bert, "tiktoken": tiktoken_ranks}.items():
        encode, encode_whole, decode = make()
        golden[name] = [[t, encode(t), encode_whole(t), decode(encode(t))] for t in texts]
    lines = [f'"{n}": [\n' + ",\n".join(json.dumps(r, ensure_ascii=True) for r in rows) + "]"
             for n, rows in golden.items()]
    write("golden.json", "{" + ",\n".join(lines) + "}\n")


main()
