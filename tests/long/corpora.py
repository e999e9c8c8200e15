#!/usr/bin/env python3
"""Corpora beside megatron-core: it must read what we write, and we what it writes.

    build/oracle/bin/python tests/long/corpora.py BLOOMERY

Random corpora of every type are written by megatron-core's IndexedDatasetBuilder, taken apart and put
together again by `bloomery data split` and `merge`, compared byte for byte, read back with
IndexedDataset, and compared with what `bloomery data inspect` says."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

TYPES = [numpy.uint8, numpy.int8, numpy.int16, numpy.int32, numpy.int64, numpy.float64,
         numpy.float32, numpy.uint16]


def run(bloomery, *arguments):
    return subprocess.run([bloomery, "data", *map(str, arguments)], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def random_documents(random, dtype):
    """Documents of 0 to 4 sequences of 0 to 300 ids."""
    high = 126 if numpy.dtype(dtype).itemsize == 1 else 32000
    return [[random.integers(0, high, random.integers(0, 300)) for _ in range(random.integers(0, 5))]
            for _ in range(random.integers(1, 80))]


def write_with_megatron(prefix, documents, dtype):
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
    for document in documents:
        for sequence in document:
            builder.add_item(torch.from_numpy(sequence))
        builder.end_document()
    builder.finalize(f"{prefix}.idx")


def same_files(a, b):
    return all(pathlib.Path(f"{a}{end}").read_bytes() == pathlib.Path(f"{b}{end}").read_bytes()
               for end in (".bin", ".idx"))


def check_one(bloomery, folder, seed):
    random = numpy.random.default_rng(seed)
    dtype = TYPES[seed % len(TYPES)]
    documents = random_documents(random, dtype)
    sequences = [sequence for document in documents for sequence in document]
    if sum(map(len, sequences)) == 0:
        return  # numpy cannot map the empty .bin
    theirs, ours, parts = folder / "theirs", folder / "ours", folder / "parts"
    write_with_megatron(theirs, documents, dtype)
    run(bloomery, "verify", theirs)
    parts.mkdir()
    run(bloomery, "split", theirs, "--output-prefix", parts / "p", "--parts",
        random.integers(1, min(len(documents), 6) + 1))
    run(bloomery, "merge", parts, "--output-prefix", ours)
    assert same_files(theirs, ours), f"seed {seed}: other bytes than megatron-core's"

    dataset = IndexedDataset(str(ours))
    assert len(dataset) == len(sequences)
    assert dataset.index.dtype == dtype
    for index, sequence in enumerate(sequences):
        assert numpy.array_equal(dataset.get(index), sequence), f"seed {seed}: sequence {index}"
    marks = numpy.cumsum([0] + [len(document) for document in documents])
    assert numpy.array_equal(dataset.document_indices, marks)

    facts = json.loads(run(bloomery, "inspect", ours, "--json", "--samples", 1000, "--top", 100000,
                           "--sample-tokens", 10000))
    ids, counts = numpy.unique(numpy.concatenate(sequences), return_counts=True)
    assert {t["id"]: t["count"] for t in facts["frequent_tokens"]} == dict(
        zip(ids.tolist(), counts.tolist()))
    for sample, document in zip(facts["samples"], documents, strict=True):
        assert sample["ids"] == [int(i) for sequence in document for i in sequence]
    assert facts["dtype"] == numpy.dtype(dtype).name
    assert facts["empty_documents"] == sum(not document for document in documents)


def main():
    bloomery = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            check_one(bloomery, pathlib.Path(folder), seed)
    print(f"{rounds} corpora agree with megatron-core")


main()
