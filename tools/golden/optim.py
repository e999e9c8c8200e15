#!/usr/bin/env python3
"""Makes tests/golden/optim_{adamw,adam,sgd}.txt and optim_schedules.txt.

The first three: 50 steps of PyTorch's optimizer in fp64 on two parameters, of which the second has
no weight decay, with clipping by the global norm and changing rate and decay; optim/golden_test.cpp
has the same problem. The last: rates and decays at many positions, one line each, from the
documented rules of Megatron's schedules. Needs torch.
Usage: tools/golden/optim.py [OUTPUT_FOLDER]"""
import itertools
import math
import os
import sys

import torch

STEPS, BATCH, CLIP = 50, 8, 5.0
SIZES = (100, 31)


def rate(style, peak, floor, warmup, length, x):
    if warmup > 0 and x <= warmup:
        return peak * x / warmup
    if style == "constant":
        return peak
    if x > length:
        return floor
    if style == "inverse-square-root":
        return max(floor, peak * max(warmup, 1) ** 0.5 / max(x, 1) ** 0.5)
    ratio = (x - warmup) / (length - warmup)
    share = 1 - ratio if style == "linear" else 0.5 * (math.cos(math.pi * ratio) + 1)
    return floor + share * (peak - floor)


def decay(style, start, end, length, x):
    if style == "constant" or x > length:
        return end
    ratio = x / length
    share = ratio if style == "linear" else 0.5 * (math.cos(math.pi * (1 - ratio)) + 1)
    return start + share * (end - start)


def train(make_optimizer):
    total = sum(SIZES)
    index = torch.arange(total, dtype=torch.float64)
    stiffness, centre = 0.5 + 0.3 * (index % 7), torch.cos(index)
    starts = torch.split(0.5 * torch.sin(index + 1), SIZES)
    weights = [torch.nn.Parameter(start.clone()) for start in starts]
    groups = [{"params": weights[:1]}, {"params": weights[1:]}]
    optimizer = make_optimizer(groups)
    norms = []
    for step in range(STEPS):
        position = step * BATCH
        whole = torch.cat([w.detach() for w in weights])
        grad = stiffness * (whole - centre) + 0.3 * torch.cos(0.7 * step + index)
        for weight, part in zip(weights, torch.split(grad, SIZES)):
            weight.grad = part.clone()
        norms.append(float(torch.nn.utils.clip_grad_norm_(weights, CLIP)))
        for group in optimizer.param_groups:
            group["lr"] = rate("cosine", 0.05, 0.005, 5 * BATCH, 40 * BATCH, position)
        optimizer.param_groups[0]["weight_decay"] = decay("linear", 0.01, 0.1, STEPS * BATCH,
                                                          position)
        optimizer.param_groups[1]["weight_decay"] = 0.0
        optimizer.step()
    return weights, optimizer, norms


def write_training(path, make_optimizer, moments):
    weights, optimizer, norms = train(make_optimizer)
    rows = {"norms": norms, "weights": torch.cat([w.detach() for w in weights]).tolist()}
    for ours, theirs in moments.items():
        rows[ours] = torch.cat([optimizer.state[w][theirs] for w in weights]).tolist()
    with open(path, "w") as file:
        for name, values in rows.items():
            file.write(name + " " + " ".join(f"{v:.17g}" for v in values) + "\n")
    clipped = sum(norm > CLIP for norm in norms)
    print(f"{path}: {clipped} of {STEPS} steps clipped")


def write_schedules(path):
    per_unit = 4  # samples per iteration; lengths below are in iterations
    with open(path, "w") as file:
        file.write("# style peak floor train decay warmup(-1: fraction) fraction "
                   "wd_style wd_start wd_end samples rate weight_decay; 4 samples per unit\n")
        styles = ("constant", "linear", "cosine", "inverse-square-root")
        warmups = ((0, 0.0), (10, 0.0), (-1, 0.013))
        for style, (warmup, fraction), wd_style in itertools.product(
                styles, warmups, ("constant", "linear", "cosine")):
            train_length, decay_length = 120, 97
            length = decay_length * per_unit
            warm = fraction * length if warmup < 0 else warmup * per_unit
            start, end = (0.1, 0.1) if wd_style == "constant" else (0.01, 0.2)
            for x in (0, 1, 5, 6, 39, 40, 41, 44, 200, 387, 388, 389, 479, 480, 481, 4000):
                lr = rate(style, 3e-4, 1e-5, warm, length, x)
                wd = decay(wd_style, start, end, train_length * per_unit, x)
                file.write(f"{style} 3e-4 1e-5 {train_length} {decay_length} {warmup} {fraction} "
                           f"{wd_style} {start} {end} {x} {lr:.17g} {wd:.17g}\n")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/golden"
    adam = {"moment1": "exp_avg", "moment2": "exp_avg_sq"}
    write_training(os.path.join(folder, "optim_adamw.txt"),
                   lambda g: torch.optim.AdamW(g, betas=(0.9, 0.95), eps=1e-8), adam)
    write_training(os.path.join(folder, "optim_adam.txt"),
                   lambda g: torch.optim.Adam(g, betas=(0.9, 0.95), eps=1e-8), adam)
    write_training(os.path.join(folder, "optim_sgd.txt"),
                   lambda g: torch.optim.SGD(g, lr=0.1, momentum=0.9),
                   {"moment1": "momentum_buffer"})
    write_schedules(os.path.join(folder, "optim_schedules.txt"))


main()
