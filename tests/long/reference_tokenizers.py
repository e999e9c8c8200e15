"""The tokenizers of the shared data folder, each with the program that is its reference."""
import base64
import json
import lzma
import pathlib

import sentencepiece
import tiktoken
import tokenizers

import composed_tokenizers

TIKTOKEN = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
         "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
    "o200k_base": (
        "|".join([
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"]),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
}


class Reference:
    """A tokenizer: `arguments` name it to bloomery; `modes` has for every way to encode the flags
    of bloomery and a function from texts to lists of ids; `decode` goes from lists of ids to texts;
    `special` are tokens to put into texts; `ids` are those whose decoding is defined."""

    def __init__(self, name, arguments, modes, decode, special, ids):
        self.name, self.arguments, self.modes = name, [str(a) for a in arguments], modes
        self.decode, self.special, self.ids = decode, special, ids


def hugging_face(name, arguments, tokenizer, plain_text=False):
    """With `plain_text` no mode recognises special tokens."""
    def encode(add, special_is_text):
        def run(texts):
            tokenizer.encode_special_tokens = special_is_text or plain_text
            return [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=add)]
        return run

    def decode(batch):
        return tokenizer.decode_batch(batch, skip_special_tokens=False)

    tokenizer.no_padding()
    tokenizer.no_truncation()
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    return Reference(name, arguments,
                     {"plain": ([], encode(False, False)),
                      "added": (["--add-special-tokens"], encode(True, False)),
                      "as text": (["--no-parse-special"], encode(False, True))},
                     decode, added, sorted(tokenizer.get_vocab().values()))


def sentence_piece(name, path):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ids = range(model.vocab_size())
    special = [model.id_to_piece(i) for i in ids if model.is_control(i)] + ["\u2581"]
    encode = lambda texts: model.encode(texts, num_threads=2)
    return Reference(name, ["--tokenizer", path],
                     {"plain": ([], encode), "as text": (["--no-parse-special"], encode)},
                     lambda batch: [model.decode(ids) for ids in batch], special,
                     [i for i in ids if not model.is_control(i)])


def tik_token(name, path):
    pattern, special = TIKTOKEN[name]
    ranks = {}
    for line in path.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    parsed = lambda texts: encoding.encode_batch(texts, num_threads=2, allowed_special="all")
    plain = lambda texts: encoding.encode_ordinary_batch(texts, num_threads=2)
    return Reference(name, ["--tokenizer", path],
                     {"plain": ([], parsed), "as text": (["--no-parse-special"], plain)},
                     lambda batch: [encoding.decode(ids) for ids in batch], list(special),
                     sorted([*ranks.values(), *special.values()]))


def gpt2_files(folder):
    vocab, merges = folder / "gpt2-vocab.json", folder / "gpt2-merges.txt"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocab), str(merges)))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return hugging_face("gpt2 vocab+merges",
                        ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", vocab,
                         "--merge-file", merges], tokenizer)


def bert_vocabulary(name, path):
    lowercase = "A" not in path.read_text().split("\n")
    tokenizer = tokenizers.BertWordPieceTokenizer(str(path), lowercase=lowercase)._tokenizer
    return hugging_face(name, ["--tokenizer", path], tokenizer)


def makers(data, scratch):
    """What makes each reference, by name. Packed vocabularies are unpacked into `scratch`."""
    folder = pathlib.Path(data) / "tokenizers"
    found = {"gpt2 vocab+merges": lambda: gpt2_files(folder / "gpt2")}

    def unpacked(packed):
        path = pathlib.Path(scratch) / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        return path

    def json_file(packed):
        path = unpacked(packed)
        return hugging_face(packed.name[:-3], ["--tokenizer", path],
                            tokenizers.Tokenizer.from_file(str(path)))

    for packed in sorted([*folder.glob("gpt2/*.json.xz"), *folder.glob("hf-json/*.json.xz")]):
        found[packed.name[:-3]] = lambda p=packed: json_file(p)
    for path in sorted(folder.glob("sentencepiece/*.model")):
        found[path.name] = lambda p=path: sentence_piece(p.name, p)
    for path in sorted(folder.glob("bert/*.txt")):
        found[path.name] = lambda p=path: bert_vocabulary(p.name, p)
    for packed in sorted(folder.glob("tiktoken/*.xz")):
        name = packed.name.split(".")[0]
        found[name] = lambda p=packed, n=name: tik_token(n, unpacked(p))

    def composed(name, contents):
        path = pathlib.Path(scratch) / f"{name}.json"
        path.write_text(json.dumps(contents()))
        return hugging_face(name, ["--tokenizer", path], tokenizers.Tokenizer.from_file(str(path)))

    for name, contents in composed_tokenizers.compose(folder).items():
        found["after-" + name] = lambda n=name, c=contents: composed("after-" + n, c)
    return found
