#!/usr/bin/env python3
"""Writes tests/golden/half_loss.txt: cross-entropy of fp16 logits with every step in fp16, by PyTorch, which is
what Megatron's --fp16-lm-cross-entropy means. First line: the scale of the gradient. Then per row: mask, label,
loss, logits and gradients; numbers of 16 bits in hexadecimal."""
import pathlib

import torch

COLUMNS, SCALE = 160, 4096.0


def bits(tensor):
    return " ".join(f"{x & 0xffff:04x}" for x in tensor.view(torch.int16).flatten().tolist())


def main():
    torch.manual_seed(7)
    spread = torch.tensor([0.0, 0.02, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    logits = (torch.randn(len(spread), COLUMNS) * spread[:, None] + torch.randn(len(spread), 1) * 3).half()
    labels = torch.randint(0, COLUMNS, (len(spread),))
    mask = torch.tensor([1, 1, 0, 1, 0.5, 1, 1, 1.0])

    shifted = logits - logits.max(dim=-1, keepdim=True)[0]
    picked = shifted.gather(1, labels[:, None])[:, 0]
    exponentials = shifted.exp()
    sums = exponentials.sum(dim=-1)
    losses = sums.log() - picked
    gradients = exponentials / sums[:, None]
    rows = torch.arange(len(spread))
    gradients[rows, labels] = (gradients[rows, labels].float() - 1).half()
    gradients *= (SCALE * mask / mask.sum()).half()[:, None]
    assert all(x.dtype == torch.half for x in (shifted, exponentials, sums, losses, gradients))

    lines = [f"{SCALE}"]
    for row in rows.tolist():
        lines += [f"{mask[row]} {labels[row]}", bits(losses[row]), bits(logits[row]), bits(gradients[row])]
    target = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/half_loss.txt"
    target.write_text("\n".join(lines) + "\n")


main()
