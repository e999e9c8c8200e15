#!/usr/bin/env python3
"""Tokenizers beside their references: random texts, encoded and decoded by both, must agree.

    build/oracle/bin/python tests/long/tokenizer_fuzz.py BLOOMERY [--texts N] [--seed S] [--only NAME...]

For every vocabulary of the shared data folder: N random texts of at most 4 KB and ten of 1 MB go
through the reference and through `bloomery tokenizer encode --jsonl` in every mode (special tokens
recognised, added, as text), their ids and as many random lists of ids through `decode --jsonl`.
Prints a table and the first differences; the exit code is 1 if there are any."""
import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "true"
import fuzz_text  # noqa: E402
import reference_tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUNK = 20000
SECONDS_PER_LONG_TEXT = 2.0
SHOWN = 5
# Long texts that the reference itself fails on, by tokenizer: what ours gives must be fast, and the
# reference must decode it to the text. (tiktoken's regular expressions: "Max stack size exceeded".)
REFERENCE_FAILS = {("o200k_base", "spaces")}


class Comparison:
    def __init__(self, bloomery, reference):
        self.bloomery, self.reference = bloomery, reference
        self.encoded = self.decoded = self.differences = 0
        self.slowest = 0.0
        self.slowest_name = ""

    def ask(self, command, flags, lines):
        arguments = [self.bloomery, "tokenizer", command, *self.reference.arguments, "--jsonl", *flags]
        done = subprocess.run(arguments, input="\n".join(lines) + "\n", encoding="utf-8",
                              stdout=subprocess.PIPE, check=True)
        answers = done.stdout.split("\n")[:-1]
        assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines"
        return answers

    def differ(self, what, given, expected, found):
        self.differences += 1
        if self.differences <= SHOWN:
            print(f"  {self.reference.name}: {what}\n    given    {given[:2000]!a}"
                  f"\n    expected {expected[:2000]!a}\n    found    {found[:2000]!a}", flush=True)

    def encode(self, mode, texts, expected=None):
        flags, encode = self.reference.modes[mode]
        # Escaped and plain, so that both ways to spell a character are read.
        lines = [json.dumps(text, ensure_ascii=i % 2 == 0) for i, text in enumerate(texts)]
        answers = self.ask("encode", flags, lines)
        if expected is None:
            expected = encode(texts)
        for text, ids, answer in zip(texts, expected, answers):
            if str(ids) != answer:
                self.differ(f"encode, {mode}", text, str(ids), answer)
        self.encoded += len(texts)
        return expected

    def decode(self, batch):
        expected = self.reference.decode(batch)
        for ids, text, answer in zip(batch, expected, self.ask("decode", [], map_str(batch))):
            if json.loads(answer) != text:
                self.differ("decode", str(ids), text, json.loads(answer))
        self.decoded += len(batch)

    def short(self, maker, count):
        for first in range(0, count, CHUNK):
            texts = maker.texts(min(CHUNK, count - first))
            for mode in self.reference.modes:
                ids = self.encode(mode, texts)
                if mode != "as text":
                    self.decode(ids)
            self.decode([maker.random.choices(self.reference.ids, k=maker.random.randint(0, 40))
                         for _ in texts])

    def long(self, maker):
        flags, encode = self.reference.modes["plain"]
        for name, text in fuzz_text.long_texts(maker).items():
            start = processor_seconds()
            answer = self.ask("encode", flags, [json.dumps(text)])[0]
            taken = processor_seconds() - start
            if taken > self.slowest:
                self.slowest, self.slowest_name = taken, name
            if taken > SECONDS_PER_LONG_TEXT:
                self.differ("time for 1 MB", name, f"{SECONDS_PER_LONG_TEXT} s", f"{taken:.1f} s")
            self.encoded += 1
            ids = json.loads(answer)
            if (self.reference.name, name) in REFERENCE_FAILS:
                if self.reference.decode([ids]) != [text]:
                    self.differ(f"decode 1 MB of {name}", str(ids[:20]), text[:80], "another text")
                continue
            expected = encode([text])[0]
            if expected != ids:
                at = first_difference(expected, ids)
                self.differ(f"encode 1 MB of {name}, id {at} of {len(expected)}", text[:80],
                            str(expected[at:at + 20]), str(ids[at:at + 20]))
            self.decode([expected])


def processor_seconds():
    """Of the programs that have ended; unlike the time of day it does not depend on what else runs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def map_str(batch):
    return [str(ids) for ids in batch]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i
    return min(len(a), len(b))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("--texts", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of tokenizers, as in the table")
    parser.add_argument("--skip-long", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"tokenizer_fuzz: skipped, there is no {options.data}")
        return 0
    failed = 0
    print(f"{'tokenizer':42}{'encoded':>10}{'decoded':>10}{'differ':>8}{'1 MB, s':>9}  slowest", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in reference_tokenizers.makers(options.data, scratch).items():
            if options.only and name not in options.only:
                continue
            reference = make()
            comparison = Comparison(options.bloomery, reference)
            maker = fuzz_text.TextMaker(random.Random(f"{options.seed} {name}"), reference.special)
            comparison.short(maker, options.texts)
            if not options.skip_long:
                comparison.long(maker)
            failed += comparison.differences
            print(f"{name:42}{comparison.encoded:10}{comparison.decoded:10}{comparison.differences:8}"
                  f"{comparison.slowest:9.2f}  {comparison.slowest_name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
