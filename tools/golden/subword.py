#!/usr/bin/env python3
"""Writes tests/golden/sentencepiece.json: small SentencePiece models of every kind, trained here,
with random texts, their ids and their decoded form. Needs the Python package sentencepiece.
Usage: tools/golden/subword.py"""
import base64
import contextlib
import io
import json
import pathlib
import random
import tempfile

import sentencepiece

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
          (0x5D0, 0x5EA), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
          (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x20D0, 0x214F), (0x2460, 0x24FF),
          (0x2580, 0x25FF), (0x3000, 0x30FF), (0x3200, 0x33FF), (0x4E00, 0x9FFF),
          (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFF00, 0xFFEF),
          (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF), (0x20000, 0x2A6DF)]
PARTS = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "e\u0301", "ö\u0332", "가\u11a8", "ﬁ", "㍍", "İ", "ß", "Σς",
         "\u200b", "\u200d", "\ufeff", "\u00ad", "\u2581", "\u2581\u2581a", "\ufffd", "\0", "\x01",
         "\t", "\n", "\r\n", "  ", "\u3000", "\u00a0", "\u2028", "[CLS]", "[MASK]", "<s>", "</s>",
         "<unk>", "<0x0A>", "\u302e\u302f", "\U0001d15e", "<sep>", "a b", "!!!!", "333333",
         "don't", "I'm", "do not", "…", "“x”", "⁇", "aga gaga"]
WORDS = ("the quick brown fox jumps over a lazy dog while seven wizards brew bitter ale near the "
         "old harbour and nobody asks why water is wet or how many times the bell has rung since "
         "morning every letter counts when words are short and vectors are long so we write tests "
         "that fail for one reason only and keep them small enough to read at a glance").split()


def random_text(rng, mean=60):
    size, parts = rng.expovariate(1 / mean) + rng.randint(0, 4), []
    while sum(map(len, parts)) < size:
        kind = rng.random()
        if kind < 0.4:
            parts.append(rng.choice(WORDS) + rng.choice(["", " ", " ", " ", ", ", "."]))
        elif kind < 0.6:
            parts.append(rng.choice(PARTS))
        elif kind < 0.7:
            parts.append(" " * rng.choice([1, 1, 2, 5]))
        elif kind < 0.8:
            parts.append(rng.choice("abxyz!?.'-") * rng.randint(1, 6))
        else:
            block = rng.choice(BLOCKS)
            parts.append("".join(chr(rng.randint(*block)) for _ in range(rng.randint(1, 4))))
    return "".join(parts)


def corpus(rng):
    for _ in range(2000):
        yield " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 12))) + rng.choice(".!?")


RULES = "\n".join(["9\t20", "A\t20", "A0\t20", "3000\t20", "2026\t2E 2E 2E", "FB01\t66 69",
                   "65 301\tE9", "200B\t", "41\t61", "130\t69"]) + "\n"
KINDS = {
    "bpe": dict(model_type="bpe"),
    "bpe_bytes": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False),
    "bpe_symbols": dict(model_type="bpe", user_defined_symbols=["<sep>", "th", "the", "a b", "!!"]),
    "bpe_suffix": dict(model_type="bpe", treat_whitespace_as_suffix=True),
    "bpe_across_words": dict(model_type="bpe", split_by_whitespace=False, add_dummy_prefix=False),
    "unigram": dict(model_type="unigram", unk_surface="[?]", bos_id=-1, pad_id=3),
    "unigram_bytes": dict(model_type="unigram", byte_fallback=True),
    "unigram_symbols": dict(model_type="unigram", user_defined_symbols=["<sep>", "th", "the", "é"],
                            remove_extra_whitespaces=False),
    "unigram_suffix": dict(model_type="unigram", treat_whitespace_as_suffix=True),
    "char": dict(model_type="char", user_defined_symbols=["<sep>"]),
    "word": dict(model_type="word"),
}


def train(rng, options):
    model = io.BytesIO()
    if "normalization_rule_name" not in options:
        options = {"normalization_rule_tsv": "rules.tsv", **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=corpus(rng), model_writer=model, vocab_size=400, hard_vocab_limit=False,
        minloglevel=2, num_threads=1, **options)
    return model.getvalue()


def fields(message):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        size = varint()
        yield tag >> 3, message[at:at + size]
        at += size


def field(number, message):
    size = len(message)
    varint = b""
    while size > 127:
        varint += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([size]) + message


def with_unused(model, rng):
    out = b""
    for number, message in fields(model):
        if number == 1 and b"\x18" not in message[-2:] and len(message) > 9 and rng.random() < 0.4:
            message += b"\x18\x05"
        out += field(number, message)
    return out


def case(model, rng):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    plain = [i for i in range(processor.vocab_size()) if not processor.is_control(i)]
    texts = [random_text(rng) for _ in range(20)]
    sequences = [[rng.choice(plain) for _ in range(rng.randint(0, 12))] for _ in range(12)]
    encoded = [(t, processor.encode(t)) for t in texts]
    return {"model": base64.b64encode(model).decode(),
            "texts": [[t, ids, processor.decode(ids)] for t, ids in encoded],
            "sequences": [[ids, processor.decode(ids)] for ids in sequences]}


def main():
    rng = random.Random(4)
    cases = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("rules.tsv").write_text(RULES)
        for name, options in KINDS.items():
            cases[name] = case(train(rng, options), rng)
    for name in ("bpe_bytes", "unigram_symbols"):
        model = with_unused(base64.b64decode(cases[name]["model"]), rng)
        cases[name + "_unused"] = case(model, rng)
    text = json.dumps(cases, ensure_ascii=True, separators=(",", ":"))
    (GOLDEN / "sentencepiece.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
