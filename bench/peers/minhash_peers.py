#!/usr/bin/env python3
"""MinHash signatures by datatrove (14 x 8, words at white space) and datasketch (128) beside `bloomery bench minhash`, on one core,
in turns; prints medians and ratios. Rates are of CPU time.

    pip install datatrove 'xxhash<4' regex tokenizers nltk spacy datasketch
    taskset -c 0 python3 bench/peers/minhash_peers.py build/bloomery ../shared/data/corpora/sotu/sotu.jsonl.xz
"""
import json
import lzma
import statistics
import subprocess
import sys
import tempfile
import time

from datasketch import MinHash
from datatrove.pipeline.dedup import minhash
from datatrove.utils.hashing import HashConfig


class Words:
    @staticmethod
    def word_tokenize(text):
        return text.split()


minhash.load_word_tokenizer = lambda language: Words()


def documents(path, characters=3000):
    with lzma.open(path, "rt") as lines:
        text = "\n".join(json.loads(line)["text"] for line in lines)
    return [text[i:i + characters] for i in range(0, len(text), characters)]


def rate(function, texts, seconds=4):
    start, done, size = time.process_time(), 0, 0
    while time.process_time() - start < seconds:
        function(texts[done % len(texts)])
        size += len(texts[done % len(texts)].encode())
        done += 1
    return size / (time.process_time() - start) / 1e6


def datatrove(fc):
    step = minhash.MinhashDedupSignature("/tmp", minhash.MinhashConfig(hash_config=HashConfig(hash_fc=fc)))
    return lambda text: step.get_signature(step.get_shingles(text))


def datasketch(text):
    words = text.lower().split()
    sketch = MinHash(num_perm=128)
    sketch.update_batch([" ".join(words[i:i + 5]).encode() for i in range(len(words) - 4)])
    return sketch.digest()


def main():
    program, path = sys.argv[1:3]
    texts = documents(path)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        file.flush()

        def bloomery(*flags):
            answer = subprocess.run([program, "bench", "minhash", "--input", file.name, "--json", *flags], check=True,
                                    capture_output=True, text=True)
            return json.loads(answer.stdout)["megabytes_per_second"]

        sides = {
            "bloomery xxh64": bloomery,
            "bloomery sha1": lambda: bloomery("--hash", "sha1"),
            "datatrove xxh64": lambda: rate(datatrove("xxhash"), texts),
            "datatrove sha1": lambda: rate(datatrove("sha1"), texts),
            "datasketch 128": lambda: rate(datasketch, texts),
        }
        rates = {name: [] for name in sides}
        for _ in range(3):
            for name, side in sides.items():
                rates[name].append(side())
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.2f} MB/s; bloomery xxh64 is {medians['bloomery xxh64'] / value:.1f} times")


main()
