#!/usr/bin/env python3
"""Makes tests/golden/optim_lion.txt: 50 steps of Lion in fp64 on the problem of optim.py, as plain
loops over its definition (Chen et al., 2023, algorithm 2). Needs nothing.
Usage: tools/golden/lion.py [OUTPUT_FOLDER]"""
import math
import os
import sys

STEPS, BATCH, CLIP = 50, 8, 5.0
SIZES = (100, 31)  # the second parameter does not decay
BETA1, BETA2 = 0.9, 0.99


def rate(x):
    """Cosine from 0.05 to 0.005 over 40 batches, after a warm-up of 5."""
    warmup, length = 5 * BATCH, 40 * BATCH
    if x <= warmup:
        return 0.05 * x / warmup
    if x > length:
        return 0.005
    share = 0.5 * (math.cos(math.pi * (x - warmup) / (length - warmup)) + 1)
    return 0.005 + share * (0.05 - 0.005)


def train():
    total = sum(SIZES)
    weights = [0.5 * math.sin(i + 1) for i in range(total)]
    average = [0.0] * total
    norms = []
    for step in range(STEPS):
        grad = [(0.5 + 0.3 * (i % 7)) * (weights[i] - math.cos(i)) + 0.3 * math.cos(0.7 * step + i)
                for i in range(total)]
        norms.append(math.sqrt(math.fsum(g * g for g in grad)))
        clip = min(1.0, CLIP / (norms[-1] + 1e-6))
        position = step * BATCH
        decay = 0.01 + (0.1 - 0.01) * position / (STEPS * BATCH)
        for i in range(total):
            g = clip * grad[i]
            c = BETA1 * average[i] + (1 - BETA1) * g
            weights[i] -= rate(position) * (math.copysign(1.0, c) if c else 0.0) + \
                rate(position) * (decay if i < SIZES[0] else 0.0) * weights[i]
            average[i] = BETA2 * average[i] + (1 - BETA2) * g
    return weights, average, norms


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/golden"
    weights, average, norms = train()
    with open(os.path.join(folder, "optim_lion.txt"), "w") as file:
        for name, values in (("norms", norms), ("weights", weights), ("moment1", average)):
            file.write(name + " " + " ".join(f"{v:.17g}" for v in values) + "\n")


main()
