#!/usr/bin/env python3
"""Makes tests/golden/fake_quantization.txt: numbers on grids of few bits by DeepSpeed's own functions, of its runtime (MoQ), its
compression library (in forward, and static ranges of activations), and the schedule of its bits.

Needs torch and a deepspeed that still has its compression library, 0.19.6 or older. Usage: python3 -P tools/golden/fake_quantization.py [OUTPUT]"""
import sys

import torch
from deepspeed.compression.basic_layer import QuantAct
from deepspeed.compression.utils import AsymQuantizer, SymQuantizer
from deepspeed.runtime.quantize import Quantizer

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
COUNT = 48


def words(tensor):
    return " ".join(repr(x) for x in tensor.flatten().tolist())


def weights():
    """weights DTYPE BITS SYMMETRIC GROUPS: numbers, and those of both of DeepSpeed's functions, which must agree."""
    for dtype in DTYPES:
        for bits, symmetric, groups in (12, True, 4), (8, True, 1), (8, False, 3), (5, True, 6), (4, False, 1), (3, True, 2):
            x = (torch.randn(COUNT) * 0.02 + 0.005 * (not symmetric)).to(DTYPES[dtype])
            q_type = "symmetric" if symmetric else "asymmetric"
            moq = Quantizer(q_groups=groups, q_type=q_type, q_rounding="nearest").quantize_highbit(x, bits)
            forward = (SymQuantizer if symmetric else AsymQuantizer).apply(x, bits, None, None, groups)
            assert torch.equal(moq, forward)
            yield f"weights {dtype} {bits} {int(symmetric)} {groups} {words(x)} {words(moq)}"


def activations():
    """activations BITS SYMMETRIC, then four inputs, each with its numbers on the grid: three of training, one of evaluation."""
    for bits, symmetric in (8, False), (8, True), (4, False):
        layer = QuantAct(quant_mode="symmetric" if symmetric else "asymmetric")
        parts = []
        for step in range(4):
            layer.train(step < 3)
            x = torch.randn(COUNT) * (1 + step) + 0.5
            parts += [words(x), words(layer(x, bits))]
        yield f"activations fp32 {bits} {int(symmetric)} 1 {' '.join(parts)}"


def schedules():
    """schedule OFFSET START TARGET PERIOD: bits that the weights of the forward pass behind 0, 1, ... steps have, 0 for none."""
    for offset, start, target, period in (0, 8, 4, 2), (5, 12, 4, 3), (3, 6, 6, 1), (50, 12, 4, 50):
        quantizer = Quantizer(q_groups=1, q_type="symmetric", q_rounding="nearest")
        weight = torch.nn.Parameter(torch.randn(4, 4))
        weight.start_bits, weight.target_bits, weight.q_period = start, target, period
        steps, current, bits = 0, 0, []

        def quantize():
            quantizer.quantize([[weight]], False, False)
            return weight.start_bits

        if offset == 0:  # as the engine does before its first forward pass
            current = quantize()
        for _ in range(450):
            bits.append(current)
            if steps >= offset:  # the update: the scheduler has seen so many steps, and counts this one afterwards
                current = quantize()
            steps += 1
        yield f"schedule {offset} {start} {target} {period} {' '.join(map(str, bits))}"


def main():
    torch.manual_seed(7)
    with open(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/fake_quantization.txt", "w") as out:
        for part in weights(), activations(), schedules():
            out.writelines(line + "\n" for line in part)


main()
