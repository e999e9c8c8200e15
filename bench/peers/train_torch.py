#!/usr/bin/env python3
"""PyTorch's training step on the models of `bloomery bench train`: tokens per second and peak memory.

Decoders written the usual fast way (fused QKV, scaled_dot_product_attention, fused AdamW, clipping at 1.0, bf16 by autocast over
fp32 weights), random tokens: GPT-2's (LayerNorm, tanh GELU, tied head) and Llama's (RMSNorm, rotary positions, SwiGLU, grouped
queries).
Usage: train_torch.py --size 124M --device cpu|cuda --dtype fp32|bf16 [--compile] [--micro-batch-size N] [--seq-length N]
                      [--gradient-accumulation-steps N] [--steps N] [--threads N] [--attention cudnn|flash|any] [--on-request]
                      [--num-experts N [--topk N]]: every MLP of GPT-2's becomes a mixture without dropping, on torch._grouped_mm
With --on-request it prints "ready" after two steps and measures once for every line on its input (bench/train_ratio.py)."""
import argparse
import contextlib
import dataclasses
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


@dataclasses.dataclass
class Shape:
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    on_gpu: tuple  # sequences, length, micro-batches
    on_cpu: tuple = (1, 256, 1)
    groups: int = 0  # of Llama's
    ffn: int = 0
    qkv_bias: bool = False
    tied: bool = True
    base: float = 1e4
    experts: int = 1  # of GPT-2's
    topk: int = 1


SHAPES = {
    "10M": Shape(6, 384, 6, 512, (64, 1024, 1), (16, 256, 1)),
    "124M": Shape(12, 768, 12, 50304, (64, 1024, 1), (4, 256, 1)),
    "345M": Shape(24, 1024, 16, 50304, (32, 1024, 1), (2, 256, 1)),
    "1.7B": Shape(24, 2304, 24, 51200, (8, 2048, 1)),
    "3.6B": Shape(30, 3072, 32, 51200, (4, 2048, 1)),
    "7.5B": Shape(36, 4096, 32, 51200, (1, 2048, 16)),
    "qwen2.5-1.5B": Shape(28, 1536, 12, 151936, (16, 1024, 1), groups=2, ffn=8960, qkv_bias=True, base=1e6),
    "llama-1.6B": Shape(24, 2048, 16, 32000, (8, 2048, 1), groups=8, ffn=8192, tied=False),
    "llama-7B": Shape(32, 4096, 32, 32000, (2, 1024, 8), groups=32, ffn=11008, tied=False),
    "qwen2.5-7B": Shape(28, 3584, 28, 152064, (1, 1024, 16), groups=4, ffn=18944, qkv_bias=True, tied=False, base=1e6),
}
ATTENTION = {"cudnn": [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], "flash": [SDPBackend.FLASH_ATTENTION]}


class Experts(nn.Module):
    def __init__(self, hidden, experts, topk):
        super().__init__()
        self.experts, self.topk, width = experts, topk, 4 * hidden // topk
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up, self.up_bias = nn.Parameter(torch.randn(experts, hidden, width) * 0.02), nn.Parameter(torch.zeros(experts, width))
        self.down, self.down_bias = nn.Parameter(torch.randn(experts, width, hidden) * 0.02), nn.Parameter(torch.zeros(experts, hidden))
        self.aux = 0.0

    def product(self, x, weight, bias, ends, owner):
        if x.is_cuda:
            return torch._grouped_mm(x.bfloat16(), weight.bfloat16(), offs=ends) + bias.to(x.dtype)[owner]
        begins = [0] + ends.tolist()
        return torch.cat([x[a:b] @ weight[e].to(x.dtype) for e, (a, b) in enumerate(zip(begins, begins[1:]))]) + bias.to(x.dtype)[owner]

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        p = F.linear(flat.float(), self.router.weight.float()).softmax(-1)
        gates, chosen = p.topk(self.topk, -1)
        if self.topk > 1:
            gates = gates / gates.sum(-1, keepdim=True)
        counts = torch.zeros(self.experts, device=x.device).index_add_(0, chosen[:, 0], torch.ones(len(flat), device=x.device))
        self.aux = self.experts * (p.mean(0) * counts / len(flat)).sum()
        owner, order = chosen.flatten().sort(stable=True)
        ends = torch.searchsorted(owner, torch.arange(self.experts, device=x.device), right=True).int()
        rows = flat[order // self.topk].to(torch.bfloat16 if x.is_cuda else x.dtype)
        rows = F.gelu(self.product(rows, self.up, self.up_bias, ends, owner), approximate="tanh")
        rows = self.product(rows, self.down, self.down_bias, ends, owner)
        y = torch.zeros_like(flat).index_add_(0, order // self.topk, (rows * gates.flatten()[order, None]).to(flat.dtype))
        return y.view_as(x)


class GptBlock(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden = shape.hidden
        self.heads = shape.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.mixture = Experts(hidden, shape.experts, shape.topk) if shape.experts > 1 else None
        if self.mixture is None:
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x, angles):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, s, 3, self.heads, h // self.heads).unbind(2)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, s, h))
        if self.mixture is not None:
            return x + self.mixture(self.norm_2(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


def turned(x, angles):
    """x [b, heads, s, d]: the first and second halves of its channels are pairs."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


class LlamaBlock(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads, self.groups, self.width = shape.heads, shape.groups, shape.hidden // shape.heads
        channels = (shape.heads + 2 * shape.groups) * self.width
        self.norm_1, self.norm_2 = nn.RMSNorm(shape.hidden, eps=1e-5), nn.RMSNorm(shape.hidden, eps=1e-5)
        self.qkv = nn.Linear(shape.hidden, channels, bias=shape.qkv_bias)
        self.projection = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.up = nn.Linear(shape.hidden, 2 * shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x, angles):
        b, s, h = x.shape
        parts = self.qkv(self.norm_1(x)).view(b, s, -1, self.width).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.groups, self.groups), dim=1)
        y = F.scaled_dot_product_attention(turned(q, angles), turned(k, angles), v, is_causal=True,
                                           enable_gqa=self.groups != self.heads)
        x = x + self.projection(y.transpose(1, 2).reshape(b, s, h))
        gate, up = self.up(self.norm_2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        llama = shape.groups > 0
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = None if llama else nn.Embedding(length, shape.hidden)
        self.blocks = nn.ModuleList((LlamaBlock if llama else GptBlock)(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5) if llama else nn.LayerNorm(shape.hidden)
        self.head = None if shape.tied else nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        self.apply(lambda m: nn.init.normal_(m.weight, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)
        width = shape.hidden // shape.heads
        turns = torch.outer(torch.arange(length), shape.base ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("cos", turns.cos(), persistent=False)
        self.register_buffer("sin", turns.sin(), persistent=False)

    def forward(self, tokens, labels):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x, (self.cos, self.sin))
        logits = F.linear(self.norm(x), (self.head or self.tokens).weight)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        mixtures = [block.mixture for block in self.blocks if getattr(block, "mixture", None) is not None]
        return loss + 0.01 * sum(mixture.aux for mixture in mixtures)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="124M", choices=SHAPES)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--micro-batch-size", type=int)
    parser.add_argument("--seq-length", type=int)
    parser.add_argument("--gradient-accumulation-steps", type=int)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--attention", default="cudnn", choices=["cudnn", "flash", "any"])
    parser.add_argument("--num-experts", type=int, default=1)
    parser.add_argument("--topk", type=int, default=1)
    parser.add_argument("--on-request", action="store_true")
    return parser.parse_args()


def main():
    o = options()
    torch.manual_seed(1)
    if o.device == "cpu":
        torch.set_num_threads(o.threads)
    shape = dataclasses.replace(SHAPES[o.size], experts=o.num_experts, topk=o.topk)
    sequences, length, parts = shape.on_gpu if o.device == "cuda" else shape.on_cpu
    sequences, length, parts = o.micro_batch_size or sequences, o.seq_length or length, o.gradient_accumulation_steps or parts
    with torch.device(o.device):
        model = Decoder(shape, length)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if o.compile else model
    tokens = torch.randint(shape.vocabulary, (sequences, length + 1), device=o.device)
    kernels = contextlib.nullcontext()
    if o.device == "cuda" and o.attention != "any":
        kernels = sdpa_kernel(ATTENTION[o.attention], set_priority=True)

    def step():
        for _ in range(parts):
            with torch.autocast(o.device, dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
                loss = run(tokens[:, :-1], tokens[:, 1:])
            (loss / parts).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    def measure(steps):
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            loss = step()
            if o.device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        seconds = sorted(times)[len(times) // 2]
        memory = torch.cuda.max_memory_reserved() / 2**30 if o.device == "cuda" else float("nan")
        mode = "compiled" if o.compile else "eager"
        batch = f"{parts} x {sequences} x {length}" if parts > 1 else f"{sequences} x {length}"
        print(f"torch {torch.__version__} {o.device} {o.size} {o.dtype} {mode}, {parameters} parameters, {batch} tokens: "
              f"{parts * sequences * length / seconds:.0f} tokens/s, {seconds * 1e3:.1f} ms/step, peak {memory:.2f} GiB, "
              f"loss {loss.item():.4f}", flush=True)

    with kernels:
        for _ in range(2):
            step()
        if o.on_request:
            print("ready", flush=True)
            for _ in sys.stdin:
                measure(o.steps)
        else:
            measure(o.steps)


if __name__ == "__main__":
    main()
