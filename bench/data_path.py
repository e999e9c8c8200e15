#!/usr/bin/env python3
"""The whole data path in one run: tokenizers beside their peers on one core, JSONL to .bin/.idx on all cores, and the index of 100
million documents. Needs a folder of real vocabularies and texts (--data), and tokenizers, tiktoken and sentencepiece for
the peers (tools/oracle_env makes such an environment: build/oracle/bin/python bench/data_path.py).

Usage: data_path.py [--bloomery build/bloomery] [--data ../shared/data] [--megabytes 400] [--only tokenizers|preprocess|index]"""
import argparse
import json
import lzma
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

PEERS = pathlib.Path(__file__).parent / "peers" / "tokenizer_peers.py"


def texts_of(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def inputs(data, folder):
    """English, Japanese, Chinese, code and random Unicode, at least a megabyte of each."""
    rng = random.Random(1)
    corpora = data / "corpora"
    udhr = lzma.open(corpora / "udhr" / "udhr.jsonl.xz", "rt", encoding="utf-8")
    chinese = [r["text"] for r in map(json.loads, udhr) if r["iso6393"] in ("cmn", "yue", "wuu", "hak", "nan", "gan", "hsn")]
    phrases = [p for text in chinese for p in text.replace("\n", "\u3002").split("\u3002") if p]
    source = pathlib.Path(__file__).parent.parent
    code = "".join(p.read_text() for p in sorted(source.glob("src/**/*.cpp")) + sorted(source.glob("src/**/*.h")))
    blocks = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x620, 0x64A), (0x900, 0x97F),
              (0xE00, 0xE5B), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F)]
    noise = "".join(chr(rng.randint(*rng.choice(blocks))) if rng.random() > 0.15 else " " for _ in range(800_000))
    english = [("wikitext.txt", (corpora / "wikitext-2" / "wiki.test.raw").read_text(encoding="utf-8")),
               ("moby-dick.txt", "\n".join(texts_of(corpora / "moby-dick" / "moby-dick.jsonl.xz"))),
               ("openwebtext.txt", "\n".join(texts_of(data / "megatron-indexed/openwebtext-1000/openwebtext-1000.jsonl.xz"))),
               ("sotu.txt", "\n".join(texts_of(corpora / "sotu" / "sotu.jsonl.xz")))]
    others = [("japanese.txt", (corpora / "sentencepiece" / "wagahaiwa_nekodearu.txt").read_text(encoding="utf-8")),
              ("chinese.txt", "\u3002".join(rng.choices(phrases, k=20_000))),
              ("code.txt", code), ("random.txt", noise)]
    return [[write(folder, name, text) for name, text in group] for group in (english, others)]


def tokenizers(options, folder):
    english, others = inputs(options.data, folder)
    vocabularies = options.data / "tokenizers"
    gpt2 = ["--vocab-file", vocabularies / "gpt2/gpt2-vocab.json", "--merge-file", vocabularies / "gpt2/gpt2-merges.txt"]
    runs = [("GPT-2 BPE", gpt2, english + others),
            ("Llama-2 SentencePiece BPE", ["--tokenizer", vocabularies / "sentencepiece/llama2.model"], english[:1] + others[:1]),
            ("BERT WordPiece", ["--tokenizer", vocabularies / "bert/bert-base-uncased-vocab.txt"], english[:1] + others[:1])]
    for title, tokenizer, files in runs:
        print(f"\n{title}", flush=True)
        subprocess.run([sys.executable, PEERS, "--bloomery", options.bloomery, *map(str, tokenizer), "--input", *files], check=True)


def preprocess(options, folder):
    with lzma.open(options.data / "megatron-indexed/openwebtext-1000/openwebtext-1000.jsonl.xz", "rb") as file:
        lines = file.read().splitlines(keepends=True)
    path, size, rng = folder / "corpus.jsonl", 0, random.Random(2)
    with open(path, "wb") as file:
        while size < options.megabytes * 1_000_000:  # in another order each time round
            rng.shuffle(lines)
            size += file.write(b"".join(lines))
    command = [options.bloomery, "preprocess", "--input", path, "--output-prefix", folder / "corpus", "--append-eod", "--overwrite",
               "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", options.data / "tokenizers/gpt2/gpt2-vocab.json",
               "--merge-file", options.data / "tokenizers/gpt2/gpt2-merges.txt", "--log-interval", "1000000000"]
    best, peak = float("inf"), 0
    for _ in range(3):
        start = time.perf_counter()
        process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        best, peak = min(best, time.perf_counter() - start), max(peak, usage.ru_maxrss)
        assert status == 0
    print(f"\npreprocess, {size / 1e6:.0f} MB of JSONL, {len(os.sched_getaffinity(0))} cores: {size / 1e6 / best:.0f} MB/s, "
          f"{peak / 1024:.0f} MiB resident (best of 3, fsync included)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bloomery", default="build/bloomery")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--only", choices=["tokenizers", "preprocess", "index"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.only in (None, "tokenizers"):
            tokenizers(options, folder)
        if options.only in (None, "preprocess"):
            preprocess(options, folder)
        if options.only in (None, "index"):
            print(flush=True)
            subprocess.run([options.bloomery, "bench", "data"], check=True)


main()
