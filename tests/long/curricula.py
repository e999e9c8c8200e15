#!/usr/bin/env python3
"""Curricula beside DeepSpeed's own code, on random configurations.

    build/oracle/bin/python tests/long/curricula.py BLOOMERY CHOOSE_SAMPLES [--cases 60] [--seed 1]

Sampler: the difficulty of every step by each schedule, chosen samples and the clusters' files, byte for byte. Analyzer:
`data analyze` on a corpus of random texts, map and reduce, beside DataAnalyzer on the same samples, every file byte for byte.
Left out of the comparison are the parts that DeepSpeed leaves behind when it reduces (*_threadN), and what it gets wrong: batches
that are short because a cluster has fewer samples than are asked of it at once, and lists whose difficulty falls and rises again,
after which it takes one cluster's file for another's."""
import argparse
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import numpy as np
import torch
import deepspeed  # noqa: F401
import deepspeed.comm as dist
from deepspeed.runtime.data_pipeline.data_sampling import data_sampler as ds_sampler
from deepspeed.runtime.data_pipeline.data_sampling.data_analyzer import DataAnalyzer
from deepspeed.runtime.data_pipeline.data_sampling.indexed_dataset import MMapIndexedDataset
from deepspeed.runtime.data_pipeline.data_sampling.utils import create_mmap_dataset_builder, close_mmap_dataset_builder
from deepspeed.utils import logger

logger.setLevel(logging.ERROR)
for name in ["barrier", "broadcast"]:
    setattr(dist, name, lambda *a, **k: None)
ds_sampler.dist = dist
ds_sampler.get_accelerator = lambda: types.SimpleNamespace(current_device_name=lambda: "cpu")


def random_schedule(rng, low, high):
    kind = rng.choice(["fixed_linear", "fixed_root", "fixed_discrete"])
    first = rng.randint(low, high)
    last = rng.randint(first, high)
    if kind == "fixed_discrete":
        count = rng.randint(1, 4)
        config = {"difficulty": sorted(rng.sample(range(first, last + 1), min(count, last + 1 - first))) + [last],
                  "max_step": sorted(rng.randint(1, 20) for _ in range(min(count, last + 1 - first)))}
    else:
        config = {"total_curriculum_step": rng.randint(1, 30), "difficulty_step": rng.randint(1, max(1, (last - first) // 3))}
        if kind == "fixed_root":
            config["root_degree"] = rng.choice([1, 2, 3, 2.5])
    return {"min_difficulty": first, "max_difficulty": last, "schedule_type": kind, "schedule_config": config}


def write_rows(path, rows, dtype):
    builder = create_mmap_dataset_builder(str(path), dtype)
    for row in rows:
        builder.add_item(torch.tensor(row, dtype=torch.long))
    close_mmap_dataset_builder(builder, str(path))


def random_metrics(rng, folder, samples):
    metrics = {}
    for i in range(rng.randint(1, 3)):
        name = f"m{i}"
        clusters, percentile = rng.random() < 0.75, rng.random() < 0.5
        if clusters:
            values = [rng.randint(3, 40) for _ in range(samples)]
            distinct = sorted(set(values))
            write_rows(folder / f"{name}_sample", [[s for s in range(samples) if values[s] == v] for v in distinct], np.uint16)
            write_rows(folder / f"{name}_metric", [[v] for v in distinct], np.uint8)
            if percentile:
                schedule = random_schedule(rng, 1, rng.randint(2, 20))
            else:
                schedule = random_schedule(rng, distinct[len(distinct) // 4], 45)
        else:
            schedule = random_schedule(rng, 8, 64)
        metrics[name] = {"index_to_sample_path": str(folder / f"{name}_sample"),
                         "index_to_metric_path": str(folder / f"{name}_metric"),
                         "difficulty_type": "percentile" if percentile else "value",
                         "clustering_type": "schedule_based" if clusters else "single_cluster", **schedule}
    return metrics


class Group:
    def size(self):
        return 1


def deepspeed_batches(config, folder):
    efficiency = {"seed": config["seed"], "data_sampling": {"num_epochs": 1000, "curriculum_learning": {
        "enabled": True, "data_cluster_path": str(folder), "curriculum_metrics": config["metrics"]}}}
    sampler = ds_sampler.DeepSpeedDataSampler(efficiency, config["num_samples"], config["global_batch"], 0, 1, Group(), 1, 0)
    lines = []
    for _ in range(config["steps"]):
        sampler.get_next_global_batch()
        if len(sampler.batch) != config["global_batch"]:
            return None
        difficulties = " ".join(str(sampler.current_difficulties[m]) for m in config["metrics"])
        lines.append(f"{difficulties} | {' '.join(map(str, sampler.batch))}")
    return lines


def same_files(ours, theirs, what):
    names = {p.relative_to(theirs) for p in theirs.rglob("*") if p.is_file()}
    names -= {n for n in names if "_thread" in n.name}
    here = {p.relative_to(ours) for p in ours.rglob("*") if p.is_file()}
    assert here == names, f"{what}: {sorted(map(str, here ^ names))}"
    for name in names:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), f"{what}: {name} differs"
    return len(names)


def check_sampler(args, rng, number):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        samples = rng.randint(60, 400)
        config = {"seed": rng.randint(0, 2**40), "num_samples": samples, "global_batch": rng.choice([2, 5, 8, 16]),
                  "steps": 40, "metrics": random_metrics(rng, folder, samples), "cluster_path": str(folder / "ours")}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "theirs").mkdir()
        try:
            expected = deepspeed_batches(config, folder / "theirs")
        except Exception as error:  # of configurations that admit nothing at first
            expected = None
        if expected is None:
            return 0
        found = subprocess.run([args.choose_samples, folder / "config.json"], capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        assert found.stdout.splitlines() == expected, f"case {number}: {json.dumps(config)}"
        same_files(folder / "ours", folder / "theirs", f"case {number}")
        return 1


class Samples(torch.utils.data.Dataset):
    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, k):
        return {"text": np.array(self.texts[k], dtype=np.int64), "index": np.array([k], dtype=np.int64)}


def metric_functions(folder, vocabulary):
    def frequency(data):
        return torch.bincount(data["text"].view(-1), minlength=vocabulary + 1).numpy()

    def rarity(data):
        stored = MMapIndexedDataset(str(folder / "total_vocab_freq/total_vocab_freq_metric_value"), skip_warmup=True)
        counts = stored[0].astype(np.int64)  # theirs wraps around in small types
        counts[counts == 0] = 1
        rare = torch.tensor(-np.log(counts / counts.sum()))
        return np.array([int(rare[row].sum().item()) for row in data["text"]], dtype=np.int64)

    return {"total_vocab_freq": (frequency, "accumulate_value_over_samples"),
            "vocab_rarity": (rarity, "single_value_per_sample")}


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_analyzer(args, rng):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        length, batch = rng.randint(8, 40), rng.choice([3, 64, 300])
        workers, threads, reducers = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 2)
        run(args.bloomery, "data", "stories", "--count", rng.randint(100, 300), "--output", folder / "text.jsonl")
        run(args.bloomery, "tokenizer", "train", "--vocab-size", 300, "--input", folder / "text.jsonl", "--output", folder / "t")
        run(args.bloomery, "preprocess", "--append-eod", "--input", folder / "text.jsonl", "--tokenizer", folder / "t",
            "--output-prefix", folder / "text")
        data = ["--data-path", folder / "text_text_document", "--seq-length", length, "--split", "90,10,0",
                "--train-data-exact-num-epochs", 1]
        first = run(args.bloomery, "data", "samples", *data, "--num-samples", 1, "--json", "--count", 1)
        assert len(json.loads(first)["tokens"]) == length + 1
        common = ["data", "analyze", *data, "--tokenizer", folder / "t", "--analyzing-data-type", "GPT", "--save", folder / "ours",
                  "--analyzing-num-workers", workers, "--analyzing-num-threads", threads, "--global-batch-size", batch,
                  "--analyzing-num-threads-reduce", reducers]
        texts, total = [], None
        for metric in ["total_vocab_freq", "vocab_rarity"]:
            for worker in range(workers):
                run(args.bloomery, *common, "--analyzing-task", "map", "--analyzing-metric", metric, "--analyzing-worker-id", worker)
            said = run(args.bloomery, *common, "--analyzing-task", "reduce", "--analyzing-metric", metric)
            total = int(said.split(" of ")[1].split()[0])
        lines = run(args.bloomery, "data", "samples", *data, "--num-samples", 1, "--json", "--count", total)
        texts = [json.loads(line)["tokens"] for line in lines.splitlines()]
        vocabulary = 384  # 300 and its special tokens, padded to a multiple of 128
        theirs = folder / "theirs"
        for metric in ["total_vocab_freq", "vocab_rarity"]:
            function, kind = metric_functions(theirs, vocabulary)[metric]
            options = dict(num_workers=workers, num_threads=threads, num_threads_reduce=reducers, batch_size=batch,
                           metric_names=[metric], metric_functions=[function], metric_types=[kind], metric_dtypes=[np.int64],
                           save_path=str(theirs))
            for worker in range(workers):
                DataAnalyzer(Samples(texts), worker_id=worker, **options).run_map()
            DataAnalyzer(Samples(texts), **options).run_reduce()
        return same_files(folder / "ours", theirs, "analyzer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("choose_samples")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    compared = sum(check_sampler(args, rng, i) for i in range(args.cases))
    print(f"sampler: {compared} of {args.cases} random configurations, 40 steps each, equal (the others fail in DeepSpeed)")
    assert compared >= args.cases // 3
    files = sum(check_analyzer(args, rng) for _ in range(3))
    print(f"analyzer: {files} files equal")


if __name__ == "__main__":
    sys.exit(main())
