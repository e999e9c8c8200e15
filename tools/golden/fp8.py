"""Prints what src/ops/fp8/quantize_test.cpp expects: MD5 of PyTorch's bytes of numbers in 8 bits.

The numbers are all of 16 bits (bf16), and fp32 ones with every exponent and many mantissas. What is
too large is clamped first, since PyTorch has other rules for it; infinities and NaN are the byte 0x7F.
"""
import hashlib

import torch


def digest(numbers: torch.Tensor, dtype: torch.dtype) -> str:
    largest = torch.finfo(dtype).max
    stored = numbers.clamp(-largest, largest).to(dtype).view(torch.uint8)
    stored[~numbers.isfinite()] = 0x7F
    return hashlib.md5(stored.numpy().tobytes()).hexdigest()


halves = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
words = (torch.arange(1 << 20, dtype=torch.int64) * 0x9E3779B1 % (1 << 32)).to(torch.uint32)
singles = words.view(torch.float32)
for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
    print(dtype, "bf16", digest(halves, dtype), "fp32", digest(singles, dtype))
