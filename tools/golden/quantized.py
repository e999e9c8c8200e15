"""Prints what src/ops/quantized/quantized_test.cpp expects: MD5 of bitsandbytes' codes on the CPU,
and of the numbers that those of NF4 stand for.

The numbers are integers of 11 bits, row by row halved once more: exact in fp16. bitsandbytes 0.50.2,
which the oracle environment does not have: pip install --no-deps it elsewhere, and set PYTHONPATH.
"""
import hashlib

import bitsandbytes.functional as bnb
import numpy
import torch

ROWS, COLUMNS = 96, 640


def digest(tensor: torch.Tensor) -> str:
    return hashlib.md5(tensor.contiguous().numpy().tobytes()).hexdigest()


words = numpy.arange(ROWS * COLUMNS, dtype=numpy.uint64) * 0x9E3779B1 % (1 << 32)
numbers = (words >> 21).astype(numpy.float32).reshape(ROWS, COLUMNS) - 1024
numbers *= numpy.float32(2.0) ** -(numpy.arange(ROWS, dtype=numpy.float32)[:, None] % 8)
x = torch.from_numpy(numbers)
codes, state = bnb.quantize_4bit(x, blocksize=64, quant_type="nf4")
print("nf4", digest(codes), "stands for", digest(bnb.dequantize_4bit(codes, state)))
codes, scales, _ = bnb.int8_vectorwise_quant(x.half())
print("int8", digest(codes), "largest", digest(scales))
