#!/usr/bin/env python3
"""Writes tests/golden/detokenize.jsonl: random texts and what Python makes of them by the rules of Megatron's zero-shot
tasks: WikiText and PTB detokenized, and what str.strip and str.split give."""
import json
import pathlib
import random
import re

PIECES = [" ", " ", " ", " ", "\n", " \n ", "\t", "\u00a0", "\u2003", "\x1c", "s '", "'", '"', "(", ")", "[", "]", "{", "}", " @-@ ",
          " @,@ ", " @.@ ", " : ", " ; ", " . ", " ! ", " ? ", " , ", "= ", "=", " N ", " 's", "\u00b0", " \u00b0 ", "$ 1", "# 1",
          " n't", "word", "Das", "5", "\u00e9", "\u65e5\u672c", "\U0001f600", "\\", "\\1"]


def wiki(text):
    text = text.replace("s '", "s'")
    for sign in "-,.":
        text = text.replace(f" @{sign}@ ", sign)
    for sign in ":;.!?,":
        text = text.replace(f" {sign} ", f"{sign} ")
    text = re.sub(r"\(\s*([^\)]*?)\s*\)", r"(\1)", text)
    text = re.sub(r"\[\s*([^\]]*?)\s*\]", r"[\1]", text)
    text = re.sub(r"{\s*([^}]*?)\s*}", r"{\1}", text)
    text = re.sub(r"\"\s*([^\"]*?)\s*\"", r'"\1"', text)
    text = re.sub(r"'\s*([^']*?)\s*'", r"'\1'", text)
    for before, after in (("= = = =", "===="), ("= = =", "==="), ("= =", "=="), (" \u00b0 ", "\u00b0"), (" \n", "\n"),
                          ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")):
        text = text.replace(before, after)
    return text


def ptb(text):
    for before, after in ((" '", "'"), (" \n", "\n"), ("\n ", "\n"), (" n't", "n't"), (" N ", "1 "), ("$ 1", "$1"),
                          ("# 1", "#1")):
        text = text.replace(before, after)
    return text


def main():
    rows = []
    for seed in range(400):
        source = random.Random(seed)
        text = "".join(source.choice(PIECES) for _ in range(source.randrange(40)))
        words = text.split()
        rows.append({"text": text, "wiki": wiki(text), "ptb": ptb(text), "strip": text.strip(), "words": len(words),
                     "last": words[-1] if words else "", "pieces": len(text.split(" "))})
    target = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/detokenize.jsonl"
    target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


main()
