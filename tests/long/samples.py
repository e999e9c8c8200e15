#!/usr/bin/env python3
"""GPT samples beside megatron-core's.

    build/oracle/bin/python tests/long/samples.py BLOOMERY [ROUNDS]

With --split 1,0,0 megatron-core's GPTDataset must yield the samples of `bloomery data samples`, in the
same order, over one and over many epochs. Where megatron-core differs from Megatron-DeepSpeed, whom we
follow (docs/formats.md), its numbers are checked to be the other ones that are documented."""
import json
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import _get_size_per_split_per_dataset
from megatron.core.datasets.blended_megatron_dataset_config import (convert_split_vector_to_split_matrix,
                                                                    parse_and_normalize_split)
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
from megatron.core.datasets.utils import Split


def write_corpus(prefix, random):
    dtype, high = [(numpy.uint16, 50000), (numpy.int32, 200000)][random.integers(2)]
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
    count = int(random.integers(1, 400))
    for _ in range(count):
        length = random.integers(1, random.choice([3, 50, 800]))
        builder.add_document(torch.from_numpy(random.integers(0, high, length)), [length])
    builder.finalize(f"{prefix}.idx")
    return count, high


def their_samples(prefix, folder, count, high, seq_length, seed, num_samples):
    tokenizer = types.SimpleNamespace(vocab_size=high, eod=0, pad=-1, unique_identifiers={})
    config = GPTDatasetConfig(random_seed=seed, sequence_length=seq_length, split="1,0,0", tokenizer=tokenizer,
                              blend=([str(prefix)], None), path_to_cache=str(folder / "theirs"),
                              reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                              create_attention_mask=False)
    dataset = GPTDataset(IndexedDataset(str(prefix)), str(prefix), numpy.arange(count, dtype=numpy.int32),
                         num_samples, Split.train, config)
    for k in range(len(dataset)):
        sample = dataset[k]
        yield sample["tokens"].tolist() + sample["labels"][-1:].tolist()


def our_samples(bloomery, prefix, seq_length, seed, num_samples, count):
    arguments = ["--data-path", prefix, "--split", "1,0,0", "--seq-length", seq_length, "--seed", seed,
                 "--num-samples", num_samples, "--which", "train", "--first", 0, "--count", count, "--json"]
    run = subprocess.run([bloomery, "data", "samples", *map(str, arguments)], check=True, text=True,
                         stdout=subprocess.PIPE)
    return [json.loads(line)["tokens"] for line in run.stdout.splitlines()]


def check_one(bloomery, folder, seed):
    random = numpy.random.default_rng(seed)
    prefix = folder / "corpus"
    count, high = write_corpus(prefix, random)
    seq_length = int(random.choice([2, 7, 64, 512]))
    num_samples = int(random.integers(1, 3000))
    theirs = list(their_samples(prefix, folder, count, high, seq_length, 1 + seed, num_samples))
    ours = our_samples(bloomery, prefix, seq_length, 1 + seed, num_samples, len(theirs))
    assert ours == theirs, f"seed {seed}: other samples than megatron-core's"
    return len(ours)


def check_documented_differences():
    def borders(text, count):
        matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(text))
        return [0] + [int(round(part[1] * float(count))) for part in matrix if part is not None]

    assert borders("1,1,1", 10) == [0, 3, 7, 10]  # Megatron-DeepSpeed: 0, 4, 7, 10
    sizes = _get_size_per_split_per_dataset([0.305, 0.695], [100], surplus=0.005)
    assert sizes == [[32], [71]]  # Megatron-DeepSpeed: 31 and 70


def main():
    bloomery = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    check_documented_differences()
    samples = 0
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            samples += check_one(bloomery, pathlib.Path(folder), seed)
    print(f"{samples} samples of {rounds} corpora agree with megatron-core")


main()
