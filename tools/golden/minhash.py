#!/usr/bin/env python3
"""Writes tests/golden/minhash.json: MinHash signatures by datatrove, with words at white space.

    pip install datatrove 'xxhash<4'
    python3 tools/golden/minhash.py
"""
import json
import pathlib
import random

from datatrove.pipeline.dedup import minhash
from datatrove.utils.hashing import HashConfig
from datatrove.utils.text import simplify_text


class Words:
    @staticmethod
    def word_tokenize(text):
        return text.split()


minhash.load_word_tokenizer = lambda language: Words()

LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ" * 6 + "éÉßİñçöåøΣσςЖжЙй中文字ÅŒﬁ한국" * 2
MARKS = " " * 60 + "\n\t.,;:!?'\"()-–—’“”…%$€@#&*_/\\|«»、。！？\u00a0\u2003\u200b\u0301\u0308\u3000\x00\x1f\x85"
DIGITS = "0123456789" * 3 + ".,٠١٢٣٫०१"


def random_text(random):
    parts = []
    for _ in range(random.randint(1, 60)):
        alphabet = random.choices([LETTERS, MARKS, DIGITS], [6, 5, 1])[0]
        parts += random.choices(alphabet, k=random.randint(1, 8))
    return "".join(parts)


def main():
    draw = random.Random(7)
    fox = "the quick brown fox jumps over the lazy dog"
    texts = [fox, "too short a text", fox.upper() + "! 1,234.56 €"] + [random_text(draw) for _ in range(60)]
    cases = []
    steps = {
        name: minhash.MinhashDedupSignature("/tmp", minhash.MinhashConfig(hash_config=HashConfig(hash_fc=fc)))
        for name, fc in (("xxh64", "xxhash"), ("sha1", "sha1"))
    }
    for text in texts:
        case = {"text": text, "simple": " ".join(simplify_text(text).split())}
        for name, step in steps.items():
            shingles = step.get_shingles(text)
            values = [v for bucket in step.get_signature(shingles) for v in bucket] if shingles.size else []
            total = 0
            for i, value in enumerate(values):
                total = (total * 31 + value) % 2**64
            case[name] = values[:3] + [total] if values else []
        cases.append(case)
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/minhash.json"
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


main()
