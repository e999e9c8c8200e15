#!/usr/bin/env python3
"""Writes tests/golden/bpe_training.json: what the trainer of the Python package tokenizers learns
from a small text, which is also in the file: its tokens by id and its merges, for some options."""
import json
import pathlib
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

STEMS = ["bloom", "forge", "iron", "ore", "slag", "heat", "bellow", "ingot", "Hütte", "Eisen",
         "炉", "鉄", "鉄鉱石", "сталь", "плавить", "aaa", "abab", "2024", "1100", "🔥"]
ENDINGS = ["", "s", "ed", "ing", "er", "ery", "n't", "'s", "-", "...", "!", "er's"]


def text(seed):
    """Words with few stems, so that counts are often equal and merges meet in the same tokens."""
    rng = random.Random(seed)
    lines = []
    for _ in range(60):
        words = [rng.choice(STEMS) + rng.choice(ENDINGS) for _ in range(rng.randint(1, 12))]
        lines.append(rng.choice([" ", "", "  "]).join(words))
    return lines


def train(lines, vocab_size, min_frequency, special_tokens):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab_size": vocab_size, "min_frequency": min_frequency,
            "special_tokens": special_tokens,
            "tokens": sorted(model["vocab"], key=model["vocab"].get), "merges": model["merges"]}


def main():
    cases = []
    for seed, options in enumerate([(300, 0, ["<|endoftext|>"]), (800, 2, []),
                                    (2000, 0, ["<pad>", "bloom", "a"]), (600, 5, ["<s>"])]):
        lines = text(seed)
        cases.append({"lines": lines, **train(lines, *options)})
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    with open(root / "tests/golden/bpe_training.json", "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


main()
