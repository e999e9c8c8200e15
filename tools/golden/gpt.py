#!/usr/bin/env python3
"""Makes tests/golden/gpt_*.safetensors: small GPTs computed by PyTorch in fp64.

Each file holds the weights, one batch, its logits, loss and all gradients, and the losses of 50
AdamW steps with clipping over 50 further batches. Needs torch and safetensors.
Usage: tools/golden/gpt.py [OUTPUT_FOLDER]"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

BASE = dict(layers=2, hidden=32, heads=4, groups=4, ffn=48, vocabulary=61, max_positions=24,
            sequences=2, length=12, norm="layer", epsilon=1e-5, one_plus_gain=False,
            activation="gelu_tanh", gated=False, bias=True, tied=True, positions="learned",
            rotary_fraction=1.0, rotary_base=10000.0, rotary_interleaved=False,
            post_norm_residual=False, documents=False)

CONFIGURATIONS = {
    "gpt2": {},
    "llama": dict(norm="rms", activation="silu", gated=True, bias=False, tied=False,
                  positions="rotary", groups=2),
    "neox_like": dict(tied=False, positions="rotary", rotary_fraction=0.5, activation="gelu_erf"),
    "interleaved": dict(positions="rotary", rotary_interleaved=True, rotary_fraction=0.5,
                        norm="rms", activation="squared_relu"),
    "post_norm": dict(post_norm_residual=True, activation="relu"),
    "geglu_gqa": dict(activation="gelu_tanh", gated=True, groups=1, one_plus_gain=True),
    "documents": dict(documents=True, tied=False, norm="rms", one_plus_gain=True, bias=False),
}


def activation(kind, x):
    if kind == "gelu_tanh":
        return F.gelu(x, approximate="tanh")
    if kind == "squared_relu":
        return F.relu(x) ** 2
    return {"gelu_erf": F.gelu, "silu": F.silu, "relu": F.relu}[kind](x)


def make_weights(c, generator):
    head_dim = c["hidden"] // c["heads"]
    per_group = c["heads"] // c["groups"] + 2
    shapes = {"embedding.tokens.weight": (c["vocabulary"], c["hidden"])}
    if c["positions"] == "learned":
        shapes["embedding.positions.weight"] = (c["max_positions"], c["hidden"])
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        up = (2, c["ffn"]) if c["gated"] else (c["ffn"],)
        shapes[p + "attention.qkv.weight"] = (c["groups"], per_group, head_dim, c["hidden"])
        shapes[p + "attention.projection.weight"] = (c["hidden"], c["hidden"])
        shapes[p + "mlp.up.weight"] = (*up, c["hidden"])
        shapes[p + "mlp.down.weight"] = (c["hidden"], c["ffn"])
        for norm in ("norm_1", "norm_2"):
            shapes[p + norm + ".gain"] = (c["hidden"],)
            if c["norm"] == "layer":
                shapes[p + norm + ".bias"] = (c["hidden"],)
        if c["bias"]:
            shapes[p + "attention.qkv.bias"] = (c["groups"], per_group, head_dim)
            shapes[p + "attention.projection.bias"] = (c["hidden"],)
            shapes[p + "mlp.up.bias"] = up
            shapes[p + "mlp.down.bias"] = (c["hidden"],)
    shapes["final_norm.gain"] = (c["hidden"],)
    if c["norm"] == "layer":
        shapes["final_norm.bias"] = (c["hidden"],)
    if not c["tied"]:
        shapes["head.weight"] = (c["vocabulary"], c["hidden"])
    weights = {}
    for name, shape in shapes.items():
        w = torch.randn(shape, generator=generator, dtype=torch.float32) * 0.15
        if name.endswith("gain") and not c["one_plus_gain"]:
            w = w + 1
        weights[name] = w.double().requires_grad_()
    return weights


def norm(c, w, name, x):
    gain = w[name + ".gain"] + (1 if c["one_plus_gain"] else 0)
    if c["norm"] == "rms":
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + c["epsilon"]) * gain
    return F.layer_norm(x, x.shape[-1:], gain, w[name + ".bias"], c["epsilon"])


def rotate(c, x, positions):
    """x [b, s, heads, dim]; positions [b, s]."""
    dim = int(x.shape[-1] * c["rotary_fraction"])
    frequencies = c["rotary_base"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = positions[..., None].double() * frequencies  # [b, s, dim/2]
    cos, sin = angle.cos()[:, :, None, :], angle.sin()[:, :, None, :]
    part, rest = x[..., :dim], x[..., dim:]
    if c["rotary_interleaved"]:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    else:
        a, b = part[..., : dim // 2], part[..., dim // 2:]
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return torch.cat([turned, rest], -1)


def attention(c, w, name, x, batch):
    b, s, h = x.shape
    head_dim, per_group = h // c["heads"], c["heads"] // c["groups"]
    qkv = torch.einsum("bsh,gqdh->bsgqd", x, w[name + ".qkv.weight"])
    if c["bias"]:
        qkv = qkv + w[name + ".qkv.bias"]
    q = qkv[:, :, :, :per_group].reshape(b, s, c["heads"], head_dim)
    k, v = qkv[:, :, :, per_group], qkv[:, :, :, per_group + 1]
    if c["positions"] == "rotary":
        q, k = rotate(c, q, batch["positions"]), rotate(c, k, batch["positions"])
    k = k.repeat_interleave(per_group, dim=2)
    v = v.repeat_interleave(per_group, dim=2)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(head_dim)
    place = torch.arange(s)
    seen = (place[None, None, :] <= place[None, :, None]) & \
           (place[None, None, :] >= batch["key_begin"][:, :, None])
    scores = scores.masked_fill(~seen[:, None], -math.inf)
    out = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(b, s, h)
    out = out @ w[name + ".projection.weight"].T
    return out + w[name + ".projection.bias"] if c["bias"] else out


def mlp(c, w, name, x):
    up = w[name + ".up.weight"]
    y = x @ up.reshape(-1, up.shape[-1]).T
    if c["bias"]:
        y = y + w[name + ".up.bias"].reshape(-1)
    if c["gated"]:
        gate, value = y.chunk(2, -1)
        y = activation(c["activation"], gate) * value
    else:
        y = activation(c["activation"], y)
    y = y @ w[name + ".down.weight"].T
    return y + w[name + ".down.bias"] if c["bias"] else y


def logits(c, w, batch):
    x = w["embedding.tokens.weight"][batch["tokens"]]
    if c["positions"] == "learned":
        x = x + w["embedding.positions.weight"][batch["positions"]]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        n = norm(c, w, p + "norm_1", x)
        x = (n if c["post_norm_residual"] else x) + attention(c, w, p + "attention", n, batch)
        n = norm(c, w, p + "norm_2", x)
        x = (n if c["post_norm_residual"] else x) + mlp(c, w, p + "mlp", n)
    x = norm(c, w, "final_norm", x)
    return x @ w["embedding.tokens.weight" if c["tied"] else "head.weight"].T


def loss_of(c, w, batch):
    out = logits(c, w, batch)
    losses = F.cross_entropy(out.flatten(0, 1), batch["labels"].flatten(), reduction="none")
    mask = batch["loss_mask"].double().flatten()
    return out, (losses * mask).sum() / mask.sum()


def make_batch(c, generator):
    b, s = c["sequences"], c["length"]
    # Mostly predictable (the successor modulo the vocabulary), so that training has something to learn.
    first = torch.randint(c["vocabulary"], (b, 1), generator=generator)
    text = (first + torch.arange(s + 1) * 3) % c["vocabulary"]
    noise = torch.rand(b, s + 1, generator=generator) < 0.1
    text = torch.where(noise, torch.randint(c["vocabulary"], (b, s + 1), generator=generator), text)
    positions = torch.arange(s).repeat(b, 1)
    begin = torch.zeros(b, s, dtype=torch.long)
    if c["documents"]:
        for row in range(b):
            cut = int(torch.randint(1, s, (1,), generator=generator))
            begin[row, cut:] = cut
            positions[row, cut:] -= cut
    mask = (torch.rand(b, s, generator=generator) > 0.15).float()
    mask[:, 0] = 1
    return dict(tokens=text[:, :-1].contiguous(), labels=text[:, 1:].contiguous(),
                loss_mask=mask, positions=positions, key_begin=begin)


def train(c, weights, batches):
    decayed = [w for n, w in weights.items() if w.dim() > 1 and not n.endswith("bias")]
    plain = [w for n, w in weights.items() if w.dim() == 1 or n.endswith("bias")]
    optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=0.1),
                                   dict(params=plain, weight_decay=0.0)],
                                  lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(c, weights, batch)[1]
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../tests/golden")
    for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
        c = {**BASE, **changes}
        generator = torch.Generator().manual_seed(1000 + number)
        weights = make_weights(c, generator)
        file = {"weight." + n: w.detach().float() for n, w in weights.items()}
        batch = make_batch(c, generator)
        out, loss = loss_of(c, weights, batch)
        loss.backward()
        file.update({"grad." + n: w.grad.clone() for n, w in weights.items()})
        file["logits"], file["loss"] = out.detach().contiguous(), loss.detach().reshape(1)
        batches = [make_batch(c, generator) for _ in range(50)]
        losses, norms = train(c, weights, batches)
        file["losses"] = torch.tensor(losses, dtype=torch.float64)
        file["norms"] = torch.tensor(norms, dtype=torch.float64)
        for key, value in batch.items():
            file["batch." + key] = value if value.is_floating_point() else value.int()
            steps = torch.stack([b[key] for b in batches])
            file["steps." + key] = steps if steps.is_floating_point() else steps.int()
        save_file(file, os.path.join(folder, f"gpt_{name}.safetensors"),
                  metadata={"config": json.dumps(c)})
        print(f"{name}: loss {loss.item():.6f}, after 50 steps {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
