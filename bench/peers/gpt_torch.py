#!/usr/bin/env python3
"""PyTorch's training step on the shapes of `bloomery bench gpt`: tokens per second and peak memory.

A GPT-2 written the usual fast way (fused QKV, scaled_dot_product_attention, tanh GELU, tied head, fused AdamW,
clipping at 1.0), random tokens, one micro-batch per step.
Usage: gpt_torch.py --size 124M|10M --device cpu|cuda --dtype fp32|bf16 [--compile] [--micro-batch N] [--length N]
                    [--steps N] [--threads N] [--on-request]
With --on-request it prints "ready" after two steps and measures once for every line on its input (bench/gpt_ratio.py)."""
import argparse
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {  # layers, hidden, heads, vocabulary, micro-batch and length on the CPU
    "124M": (12, 768, 12, 50304, 4, 256),
    "10M": (6, 384, 6, 512, 16, 256),
    "345M": (24, 1024, 16, 50304, 2, 256),
}


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, s, 3, self.heads, h // self.heads).unbind(2)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.apply(lambda m: nn.init.normal_(m.weight, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="124M", choices=SIZES)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--micro-batch", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--on-request", action="store_true")
    o = parser.parse_args()
    torch.manual_seed(1)
    if o.device == "cpu":
        torch.set_num_threads(o.threads)
    layers, hidden, heads, vocabulary, micro_batch, length = SIZES[o.size]
    micro_batch, length = o.micro_batch or micro_batch, o.length or length
    model = Gpt(layers, hidden, heads, vocabulary, length).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if o.compile else model
    tokens = torch.randint(vocabulary, (micro_batch, length + 1), device=o.device)

    def step():
        with torch.autocast(o.device, dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = run(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
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
        print(f"torch {torch.__version__} {o.device} {o.size} {o.dtype} {mode}: {micro_batch * length / seconds:.0f} tokens/s, "
              f"{seconds * 1e3:.1f} ms/step, peak {memory:.2f} GiB, loss {loss.item():.4f}", flush=True)

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
