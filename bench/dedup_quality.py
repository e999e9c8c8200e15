#!/usr/bin/env python3
"""Recall and precision of `data dedup` on planted near-duplicates: documents of random phrases from real texts, and copies of 20,000 of
them with words replaced, whose similarity is known. Prints recall by similarity beside what theory says, and precision.

    python3 bench/dedup_quality.py build/bloomery ../shared/data/corpora/sotu/sotu.jsonl.xz [--copies 20000]
"""
import argparse
import json
import lzma
import pathlib
import random
import re
import subprocess
import tempfile


def shingles(text):
    words = re.sub(r"[^a-z0-9]+", " ", re.sub(r"\d+([.,]\d+)?", "0", text.lower())).split()
    return {tuple(words[i:i + 5]) for i in range(len(words) - 4)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("corpus")
    parser.add_argument("--copies", type=int, default=20000)
    args = parser.parse_args()
    draw = random.Random(5)
    with lzma.open(args.corpus, "rt") as lines:
        words = " ".join(json.loads(line)["text"] for line in lines).encode("ascii", "ignore").decode().split()

    def document():
        parts = []
        for _ in range(draw.randint(15, 40)):
            start = draw.randrange(len(words) - 20)
            parts += words[start:start + draw.randint(3, 20)]
        return parts

    originals = [document() for _ in range(2 * args.copies)]
    rows = [(i, i, 1.0, " ".join(parts)) for i, parts in enumerate(originals)]
    for i in range(args.copies):
        parts = list(originals[i])
        for _ in range(draw.randint(1, max(1, len(parts) // 25))):
            parts[draw.randrange(len(parts))] = draw.choice(words)
        copy = " ".join(parts)
        a, b = shingles(" ".join(originals[i])), shingles(copy)
        rows.append((len(originals) + i, i, len(a & b) / len(a | b), copy))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "planted.jsonl"
        with source.open("w") as out:
            for number, _, _, text in rows:
                out.write(json.dumps({"id": number, "text": text}) + "\n")
        subprocess.run([args.bloomery, "data", "dedup", "--input", source, "--output", f"{folder}/out", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        kept = {json.loads(line)["id"] for line in open(f"{folder}/out/planted.jsonl")}
    copies = rows[len(originals):]
    removed = [row for row in rows if row[0] not in kept]
    true = sum(row[0] >= len(originals) for row in removed)
    expected = sum(1 - (1 - s**8)**14 for _, _, s, _ in copies)
    print(f"{len(copies)} copies among {len(rows)} documents: {true} found, recall {true / len(copies):.4f} (theory {expected / len(copies):.4f}), "
          f"precision {true / max(1, len(removed)):.5f} ({len(removed) - true} others removed)")
    for low in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
        high = low + (0.05 if low >= 0.7 else 0.1)
        inside = [row for row in copies if low <= row[2] < high]
        if inside:
            found = sum(row[0] not in kept for row in inside)
            theory = sum(1 - (1 - s**8)**14 for _, _, s, _ in inside) / len(inside)
            print(f"  similarity {low:.2f} to {high:.2f}: {found} of {len(inside)} found, {found / len(inside):.3f} (theory {theory:.3f})")


main()
