#!/usr/bin/env python3
"""Writes tests/golden/sentences_punkt.txt: where NLTK's punkt (English) begins sentences in texts of
shared/data. Needs nltk and its punkt_tab data (NLTK_DATA).

A line is a document: file, number of the document in it, then the byte offsets of all sentences but
the first, each as the distance from the one before. A document of a plain text file is a paragraph
between blank lines. Documents are chosen at random until there are 1,250 sentences of each file.
"""
import json
import lzma
import pathlib
import random
import re
import sys

from nltk.tokenize.punkt import PunktTokenizer

FILES = [
    "corpora/sotu/sotu.jsonl.xz",
    "corpora/moby-dick/moby-dick.jsonl.xz",
    "corpora/wikitext-2/wiki.test.raw",
    "megatron-indexed/openwebtext-1000/openwebtext-1000.jsonl.xz",
]
SENTENCES_OF_EACH = 1250


def documents(path):
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
    if ".jsonl" in path.name:
        return [json.loads(line)["text"] for line in text.splitlines()]
    return re.split(r"\n[ \n]*\n", text)


def starts(splitter, text):
    """Byte offsets of the sentences after the first."""
    offsets, at, position = [], 0, 0
    for begin, _ in list(splitter.span_tokenize(text))[1:]:
        at += len(text[position:begin].encode())
        position = begin
        offsets.append(at)
    return offsets


def main(data, output):
    splitter = PunktTokenizer("english")
    lines = []
    for file in FILES:
        texts = documents(pathlib.Path(data) / file)
        order = list(range(len(texts)))
        random.Random(4).shuffle(order)
        sentences = 0
        for number in order:
            if sentences >= SENTENCES_OF_EACH or len(texts[number]) > 60000:
                continue
            offsets = starts(splitter, texts[number])
            sentences += len(offsets) + 1
            steps = [b - a for a, b in zip([0] + offsets, offsets)]
            lines.append(" ".join(map(str, [file, number] + steps)))
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
