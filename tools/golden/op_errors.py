#!/usr/bin/env python3
"""Repeats the exported op cases in PyTorch and writes tests/golden/op_errors.txt.

For every case: PyTorch in fp64 must give our fp64 results (an independent check of the oracle), and PyTorch's own error in
fp32, bf16 and fp16 on the same rounded inputs becomes a row "case dtype tensor error". Cases that PyTorch has no op for in a
low precision (attention dropout with a given mask), or computes otherwise (relative bias), are checked in fp64 only.

Usage: BLOOMERY_EXPORT=FOLDER bloomery_ops_test --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_Export*'
       (and bloomery_parallel_test), then op_errors.py FOLDER. Needs torch and safetensors."""
import glob
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def philox(key, counter, rounds=7):
    """Philox 4x32 on arrays: key (low, high), counter four uint32 arrays."""
    c = [np.asarray(x, dtype=np.uint64) for x in np.broadcast_arrays(*counter)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
        c = [(p1 >> high) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> high) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def kept(key, sample, place, head, block, lane, probability):
    """Multiplier of each element: 0, or what kept elements are scaled by."""
    key = int(key)
    words = philox((key & 0xFFFFFFFF, key >> 32),
                   (sample & 0xFFFFFFFF, ((sample >> 32) & 0xFFFF) | (head << 16), place, block))
    words = np.stack(words)
    bits = (np.take_along_axis(words, np.broadcast_to(lane // 2, words.shape[1:])[None], 0)[0] >>
            (16 * (lane % 2)).astype(np.uint64)) & np.uint64(0xFFFF)
    threshold = int(np.float32(probability) * np.float32(65536) + np.float32(0.5))
    scale = 65536 / (65536 - threshold) if threshold < 65536 else 0.0
    return torch.from_numpy((bits >= threshold) * np.float64(np.float32(scale)))


def channel_mask(t, a, shape, probability, key):
    """Of [tokens, channels]."""
    token, channel = np.arange(shape[0])[:, None], np.arange(shape[1])[None]
    length = max(int(a["length"]), 1)
    sample = t["samples"].numpy().astype(np.int64)[token // length]
    place = t["places"].numpy()[token % length]
    return kept(key, sample, place, 0, channel // 8, channel % 8, probability)


def activation(kind, x):
    if kind == "gelu_tanh":
        return F.gelu(x, approximate="tanh")
    if kind == "squared_relu":
        return F.relu(x).square()
    return {"none": lambda y: y, "gelu_erf": F.gelu, "silu": F.silu, "relu": F.relu}[kind](x)


def linear(t, a):
    return {"y": activation(a["activation"], F.linear(t["x"], t["weight"].flatten(0, -2), flat(t.get("bias"))))}


def flat(x):
    return None if x is None else x.flatten()


def linear_mlp(t, a):
    h = activation(a["activation"], F.linear(t["x"], t["weight1"].flatten(0, -2), t["bias1"].flatten()))
    return {"y": F.linear(h, t["weight2"].flatten(0, -2), t["bias2"].flatten())}


def linear_unadded_bias(t, a):
    y = F.linear(t["x"], t["weight"])
    return {"y": y + (t["bias"] - t["bias"].detach())}


def norm(t, a):
    x = t["stream"]
    wide = torch.promote_types(x.dtype, torch.float32) if a["fp32_stream"] == "1" else x.dtype
    x = x.to(wide)
    if "pending" in t:
        branch = t["pending"]
        if float(a["dropout"]) > 0:
            branch = branch * channel_mask(t, a, x.shape, float(a["dropout"]), a["dropout_key"]).to(branch.dtype)
        x = x + branch.to(wide)
    gain = t["gain"] + 1 if a["one_plus_gain"] == "1" else t["gain"]
    epsilon = float(np.float32(float(a["epsilon"])))
    bias = t.get("bias")
    if a["kind"] == "rms":
        y = F.rms_norm(x, x.shape[-1:], gain.to(wide), epsilon)
        y = y if bias is None else y + bias
    else:
        y = F.layer_norm(x, x.shape[-1:], gain.to(wide), None if bias is None else bias.to(wide), epsilon)
    return {"stream": x, "y": y.to(t["gain"].dtype)}


def dropout(t, a):
    return {"y": t["x"] * channel_mask(t, a, t["x"].shape, float(a["probability"]), a["key"]).to(t["x"].dtype)}


def embedding(t, a):
    rows = t["table"].shape[0]
    row = t["tokens"].long() - int(a["first_token"])
    inside = (row >= 0) & (row < rows)
    y = F.embedding(row.clamp(0, rows - 1), t["table"]) * inside[:, None]
    wide = torch.promote_types(y.dtype, torch.float32) if a["result"] != "same" else y.dtype
    y = y.to(wide)
    if "position_table" in t:
        p = F.embedding(t["positions"].long(), t["position_table"]).to(wide)
        y = y + p if a["add_positions"] == "1" else y + (p - p.detach())
    return {"y": y}


def rotary(t, a):
    x, turned, magnitude = t["x"], int(a["turned"]), float(a["magnitude"])
    frequencies = torch.tensor([float(f) for f in a["frequencies"].split()], dtype=torch.float64)
    dim = 2 * len(frequencies)
    angle = t["positions"].double()[:, None] * frequencies
    cos, sin = [(f(angle) * magnitude)[:, None, None].to(x.dtype) for f in (torch.cos, torch.sin)]
    head, rest = x[:, :, :turned], x[:, :, turned:]
    part, tail = head[..., :dim], head[..., dim:]
    if a["interleaved"] == "true":
        p, q = part[..., 0::2], part[..., 1::2]
        out = torch.stack([p * cos - q * sin, q * cos + p * sin], -1).flatten(-2)
    else:
        p, q = part.chunk(2, -1)
        out = torch.cat([p * cos - q * sin, q * cos + p * sin], -1)
    return {"y": torch.cat([torch.cat([out, tail], -1), rest], 2)}


def head_norm(t, a):
    x, epsilon = t["qkv"], float(np.float32(float(a["epsilon"])))
    wide = torch.promote_types(x.dtype, torch.float32)
    y = (x.to(wide) * torch.rsqrt(x.to(wide).square().mean(-1, keepdim=True) + epsilon)).to(x.dtype)
    gains = [t[name] + 1 if a["one_plus_gain"] == "1" else t[name] for name in ("query_gain", "key_gain")]
    return {"y": torch.cat([y[:, :, :-2] * gains[0], y[:, :, -2:-1] * gains[1], x[:, :, -1:]], 2)}


def relative_bucket(distance, buckets, farthest, bidirectional):
    """T5's buckets of distances between key and query."""
    result = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        result += (distance > 0) * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    far = exact + (torch.log(distance.clamp(min=1).float() / exact) / math.log(farthest / exact) * (buckets - exact)).long()
    return result + torch.where(distance < exact, distance, far.clamp(max=buckets - 1))


def attention(t, a):
    b, heads, groups = int(a["sequences"]), int(a["heads"]), int(a["groups"])
    per = heads // groups
    if "qkv" in t:
        qkv = t["qkv"]
        d, s = qkv.shape[-1], qkv.shape[0] // b
        q = qkv[:, :, :per].reshape(b, s, heads, d)
        k, v = qkv[:, :, per].reshape(b, s, groups, d), qkv[:, :, per + 1].reshape(b, s, groups, d)
    else:
        d, s = t["q"].shape[-1], t["q"].shape[0] // b
        q = t["q"].reshape(b, s, heads, d)
        k, v = (t["kv"][:, :, i].reshape(b, -1, groups, d) for i in (0, 1))
    keys = k.shape[1]
    q, k, v = q.transpose(1, 2), k.repeat_interleave(per, 2).transpose(1, 2), v.repeat_interleave(per, 2).transpose(1, 2)
    place, key = torch.arange(s)[:, None], torch.arange(keys)[None]
    seen = (key <= place + keys - s) if a["causal"] == "true" else torch.ones(s, keys, dtype=torch.bool)
    if int(a["window"]) > 0:
        seen = seen & (place + keys - s - key < int(a["window"]))
    seen = seen.expand(b, s, keys)
    if "key_begin" in t:
        seen = seen & (key[None] >= t["key_begin"].reshape(b, s, 1)) & (key[None] < t["key_end"].reshape(b, s, 1))
    blind = ~seen.any(-1)  # queries without keys give zeros
    seen = (seen | blind[..., None])[:, None]
    scale = float(np.float32(float(a["scale"])))
    bias = 0
    if "bias" in t:
        buckets = relative_bucket(key - place - (keys - s), len(t["bias"]), int(a["max_distance"]), a["causal"] != "true")
        bias = t["bias"][buckets].permute(2, 0, 1)[None]
    if float(a["dropout"]) == 0:
        mask = bias.masked_fill(~seen, -math.inf) if "bias" in t else seen
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    else:
        p = ((q @ k.transpose(-1, -2)) * scale + bias).masked_fill(~seen, -math.inf).softmax(-1)
        grid = np.ogrid[:b, :heads, :s, :keys]
        sample = t["samples"].numpy().astype(np.int64)[grid[0]]
        mask = kept(a["dropout_key"], sample, t["places"].numpy()[grid[2]], grid[1] + int(a["first_head"]),
                    (grid[3] // 32) * 4 + (grid[3] % 8) // 2, ((grid[3] % 32) // 8) * 2 + grid[3] % 2, float(a["dropout"]))
        y = (p * mask.to(p.dtype)) @ v
    y = y.masked_fill(blind[:, None, :, None], 0)
    return {"y": y.transpose(1, 2).reshape(b * s, heads * d)}


def head_loss(t, a):
    vocabulary, columns = int(a["vocabulary"]), t["weight"].shape[0]
    logits = F.linear(t["x"], t["weight"], t.get("bias"))
    wide = torch.promote_types(logits.dtype, torch.float32)
    logits = logits.to(wide)
    if a["padded_in_softmax"] != "1":
        logits = logits.masked_fill(torch.arange(columns) >= vocabulary, -math.inf)
    losses = F.cross_entropy(logits, t["labels"].long(), reduction="none")
    mask = t.get("loss_mask", torch.ones(len(losses))).to(wide)
    total = mask.sum()
    loss = (losses * mask).sum() / total if total > 0 else (losses * 0).sum()
    return {"loss": loss.reshape(1), "token_losses": losses}


def distill_loss(t, a):
    vocabulary, temperature, wide = int(a["vocabulary"]), float(a["temperature"]), t["x"].dtype
    wide = torch.promote_types(wide, torch.float32)
    student = F.linear(t["x"], t["weight"], t.get("bias")).to(wide)[:, :vocabulary] / temperature
    teacher = F.linear(t["teacher_x"], t["teacher_weight"], t.get("teacher_bias")).to(wide)[:, :vocabulary] / temperature
    divergence = F.kl_div(F.log_softmax(student, 1), F.softmax(teacher, 1), reduction="none").sum(1)
    mask = t.get("loss_mask", torch.ones(len(divergence))).to(wide)
    mean = (divergence * mask).sum() / mask.sum() if mask.sum() > 0 else (divergence * 0).sum()
    distillation = float(a["weight"]) * temperature**2 * mean.reshape(1)
    return {"loss": head_loss(t, a)["loss"] + distillation, "distillation": distillation}


def head_logits(t, a):
    logits = F.linear(t["x"], t["weight"], t.get("bias"))
    return {"logits": logits.masked_fill(torch.arange(logits.shape[1]) >= int(a["vocabulary"]), -math.inf)}


def first_tokens(t, a):
    x, length, first = t["x"], int(a["length"]), int(a["first"])
    rows = [b * length - first for b in range(int(a["sequences"]))]
    return {"y": torch.stack([x[r] if 0 <= r < len(x) else x[0] * 0 for r in rows])}


OPS = {"add": lambda t, a: {"y": t["a"] + t["b"]}, "scale": lambda t, a: {"y": t["x"] * float(a["factor"])},
       "activation": lambda t, a: {"y": activation(a["activation"], t["x"])},
       "gated_activation": lambda t, a: {"y": activation(a["activation"], t["x"].reshape(len(t["x"]), 2, -1)[:, 0]) *
                                         t["x"].reshape(len(t["x"]), 2, -1)[:, 1]},
       "linear": linear, "linear_mlp": linear_mlp, "linear_unadded_bias": linear_unadded_bias, "norm": norm,
       "dropout": dropout, "embedding": embedding, "rotary": rotary, "rotary_heads": rotary, "attention": attention,
       "cross_attention": attention, "head_norm": head_norm, "head_loss": head_loss, "head_logits": head_logits,
       "distill_loss": distill_loss,
       "first_tokens": first_tokens, "tanh": lambda t, a: {"y": torch.tanh(t["x"])}}


LOSSES = ("head_loss", "distill_loss")  # whose gradients are those of their loss


def run(op, inputs, seeds, attributes, dtype):
    """All outputs and gradients, in fp64."""
    t = {}
    for name, x in inputs.items():
        if x.dtype == torch.float64:
            x = x.to(dtype).requires_grad_()
        t[name] = x
    outputs = OPS[op](t, attributes)
    if op in LOSSES:
        scale = t["grad_scale"].double().item() if "grad_scale" in t else 1.0
        objective = (outputs["loss"] * scale).sum()
    else:
        objective = sum(((outputs[n].double() if dtype == torch.float64 else outputs[n]) *
                         s.to(dtype).to(outputs[n].dtype)).sum() for n, s in seeds.items()) if seeds else None
    wanted = {n: x for n, x in t.items() if x.requires_grad}
    results = {n: y.detach().double().flatten() for n, y in outputs.items()}
    if objective is not None and wanted:
        outs = [outputs["loss"]] if op in LOSSES else [outputs[n] for n in seeds]
        grads = [torch.full_like(outputs["loss"], scale)] if op in LOSSES else \
                [s.to(dtype).to(outputs[n].dtype) for n, s in seeds.items()]
        for n, g in zip(wanted, torch.autograd.grad(outs, list(wanted.values()), grads, allow_unused=True)):
            results["grad." + n] = (torch.zeros_like(wanted[n]) if g is None else g).double().flatten()
    return results


def error(a, b):
    same = a == b
    difference = torch.where(same, 0, a - b).norm().item()
    size = torch.where(b.isfinite(), b, 0).norm().item()
    return difference / size if size > 1e-9 else difference


def main():
    folder = sys.argv[1]
    rows, worst, skipped = [], 0.0, {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        stem = os.path.basename(path)[:-len(".safetensors")]
        op = stem.split("~")[0]
        if op not in OPS:
            skipped[op] = skipped.get(op, 0) + 1
            continue
        with safe_open(path, "pt") as file:
            a = file.metadata()
            tensors = {n: file.get_tensor(n) for n in file.keys()}
        inputs = {n[3:]: x for n, x in tensors.items() if n.startswith("in.")}
        seeds = {n[5:]: x for n, x in tensors.items() if n.startswith("seed.")}
        ours = {n: x for n, x in tensors.items() if not n.startswith(("in.", "seed."))}
        exact = run(op, inputs, seeds, a, torch.float64)
        for n, x in ours.items():
            e = error(x, exact[n])
            worst = max(worst, e)
            if not e < 2e-7:  # attributes such as epsilon and probabilities are fp32
                print(f"DIFFERS {stem} {n}: {e:.3g}")
        if "attention" in op and (float(a.get("dropout", 0)) > 0 or "bias" in inputs):
            continue
        for name in a["dtypes"].split():
            rounded = {n: x.to(DTYPES[name]).double() if x.dtype == torch.float64 else x for n, x in inputs.items()}
            seeds_rounded = {n: s.to(DTYPES[name]).double() for n, s in seeds.items()}
            oracle = run(op, rounded, seeds_rounded, a, torch.float64)
            actual = run(op, inputs, seeds, a, DTYPES[name])
            for n in ours:
                e = error(actual[n], oracle[n])
                if math.isfinite(e):
                    rows.append(f"{stem.replace('~', '/')} {name} {n} {e:.4g}")
    target = os.path.join(os.path.dirname(__file__), "../../tests/golden/op_errors.txt")
    with open(target, "w") as out:
        out.write("\n".join(rows) + "\n")
    print(f"{len(rows)} rows; largest difference of the fp64 oracles {worst:.3g}; no PyTorch op for {skipped}")


if __name__ == "__main__":
    main()
