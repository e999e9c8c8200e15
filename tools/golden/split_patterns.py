#!/usr/bin/env python3
"""Writes tests/golden/split_patterns.json: random texts and where the split patterns divide them,
by the regular expression engines of the reference tokenizers. Needs the Python packages tokenizers
and regex. For each text and pattern: the ends of the pieces as byte offsets."""
import json
import pathlib
import random

import regex
from tokenizers import Regex, pre_tokenizers

CONTRACTIONS = r"'s|'t|'re|'ve|'m|'ll|'d"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = (rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
          rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}")
PATTERNS = {
    "gpt2": rf"{CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
              r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "llama3": LLAMA3,
    "qwen2": LLAMA3.replace("{1,3}", ""),
    "qwen3_5": LLAMA3.replace("{1,3}", "").replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(
        r"\s\p{L}\p{N}", r"\s\p{L}\p{M}\p{N}"),
    "o200k": "|".join([rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:{CONTRACTIONS})?",
                       rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*(?i:{CONTRACTIONS})?",
                       r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", TAIL]),
}
# One of every kind that the patterns tell apart, and some that only look like it.
CHARACTERS = ("abzAZéßÉÀżŻǅǆʰªºא中あカ한ไधा\u0301\u0300\u094d0159٣५½Ⅷ²㊿"
              "!?.,;/\\'\"()[]{}<>|-_=+*&^%$#@~`«»—…、。€©→∑😀👍🏽\u200d\ufe0f🇩🇪"
              " \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\u180e\ufeff"
              "\x00\x07\x7f\xad\ue000\U0010ffff\U0001e900\U0001e922\U00020000")
WORDS = ["the", "The", "don't", "I'LL", "we'Ve", "'s", "'S", "'ſ", "'re", "'rE", "'lL", "'x", "''",
         "1", "12", "1234567", "camelCase", "HTMLParser", "naïve", "ПРИВЕТ", "Привет", "你好世界",
         "日本語", "हिन्दी", "e\u0301", "A\u0301B", "\r\n", "\n\n", "   ", "\t", " \n ", "  \n",
         "//", "!!!\n", " ...", "http://a/b", "👨‍👩‍👧"]


def text_of(rng):
    length = 1 + int(rng.expovariate(1 / 9))
    kind = rng.random()
    if kind < 0.4:
        return "".join(rng.choice(CHARACTERS) for _ in range(length))
    if kind < 0.5:
        few = rng.sample(CHARACTERS, 3)
        return "".join(rng.choice(few) for _ in range(length))
    return "".join(rng.choice(WORDS) + rng.choice(["", "", " "]) for _ in range(length))


def by_tokenizers(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text)]


def ends(pieces):
    at, result = 0, []
    for piece in pieces:
        at += len(piece.encode())
        result.append(at)
    return result


def main():
    # tiktoken's own pattern is not in the syntax of the other engine, where $ also ends a line.
    split = {name: by_tokenizers(pattern) for name, pattern in PATTERNS.items() if name != "cl100k"}
    split["cl100k"] = regex.compile(PATTERNS["cl100k"]).findall
    rng = random.Random(20240601)
    cases = []
    for _ in range(500):
        text = text_of(rng)
        cases.append({"text": text, **{name: ends(split[name](text)) for name in PATTERNS}})
    assert all(case[name][-1] == len(case["text"].encode()) for case in cases for name in PATTERNS)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    root = pathlib.Path(__file__).resolve().parents[2]
    (root / "tests/golden/split_patterns.json").write_text(
        f'{{"patterns": {json.dumps(PATTERNS, indent=1)},\n"cases": [\n{lines}\n]}}\n')


main()
