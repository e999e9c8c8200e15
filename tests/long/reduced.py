#!/usr/bin/env python3
"""A start of Bloomery with small numbers: as the program between a shim and Bloomery.

    reduced.py BLOOMERY shim NAME ARGUMENTS...

Tensor, pipeline and sequence degrees stay. REDUCED_ITERATIONS in the environment is the length of a training run."""
import json
import os
import pathlib
import sys

SIZES = {"--num-layers": 4, "--hidden-size": 128, "--num-attention-heads": 16, "--num-query-groups": 4, "--num-key-value-heads": 4,
         "--ffn-hidden-size": 256, "--lr-decay-samples": 16, "--lr-warmup-samples": 2, "--seq-length": 64, "--max-position-embeddings": 64,
         "--global-batch-size": 4, "--micro-batch-size": 1, "--log-interval": 1, "--eval-iters": 1, "--save-interval": 1,
         "--out-seq-length": 16, "--lr-decay-iters": 8, "--lr-warmup-iters": 1, "--eval-interval": 8}


def smaller(words, iterations):
    words = list(words)
    for i, word in enumerate(words[:-1]):
        if word in SIZES:
            words[i + 1] = str(SIZES[word])
        if word in ("--train-iters", "--train-samples"):
            words[i + 1] = str(iterations * (1 if word == "--train-iters" else SIZES["--global-batch-size"]))
    return words


def shrink_config(path):
    """DeepSpeed's JSON with the same batch, and a loss scale that fp16 can hold from the first step."""
    config = json.loads(path.read_text())
    changes = {"train_batch_size": SIZES["--global-batch-size"], "train_micro_batch_size_per_gpu": SIZES["--micro-batch-size"]}
    config.update({key: value for key, value in changes.items() if key in config})
    if "initial_scale_power" in config.get("fp16", {}):
        config["fp16"]["initial_scale_power"] = 8
    path.write_text(json.dumps(config))


def main():
    program, *words = sys.argv[1:]
    for i, word in enumerate(words):
        flag, _, value = word.partition("=")
        if flag == "--deepspeed_config":
            shrink_config(pathlib.Path(value or words[i + 1]))
    words = smaller(words, int(os.environ["REDUCED_ITERATIONS"]))
    os.execv(program, [program, *words])


if __name__ == "__main__":
    main()
