#!/usr/bin/env python3
"""Makes tests/golden/gpt_*.safetensors: small GPTs computed by PyTorch in fp64.

Each file holds the weights, one batch, its logits, loss and all gradients, and the losses of 50
AdamW steps with clipping over 50 further batches. Needs torch and safetensors.
Usage: tools/golden/gpt.py [OUTPUT_FOLDER [MODEL..]]"""
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
            post_norm_residual=False, documents=False, moe=None)

# A mixture without random numbers: full experts serve first choices in the order of positions, or with three choices the
# most probable ones.
MOE = dict(experts=[4], interval=1, topk=1, ffn=48, shared_ffn=0, residual=False, capacity=0.75, least=1, balance=0.1, z=0.01)

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
    "moe_top1": dict(moe=dict(MOE, interval=2)),
    "moe_residual": dict(moe=dict(MOE, experts=[4, 3], topk=2, residual=True)),
    "moe_shared": dict(norm="rms", activation="silu", gated=True, bias=False, positions="rotary",
                       moe=dict(MOE, experts=[5], topk=3, ffn=24, shared_ffn=20, capacity=0.9, z=0.0)),
}


def activation(kind, x):
    if kind == "gelu_tanh":
        return F.gelu(x, approximate="tanh")
    if kind == "squared_relu":
        return F.relu(x) ** 2
    return {"gelu_erf": F.gelu, "silu": F.silu, "relu": F.relu}[kind](x)


def num_experts(c, layer):
    m = c["moe"]
    if m is None or (layer + 1) % m["interval"]:
        return 1
    return m["experts"][0 if len(m["experts"]) == 1 else layer // m["interval"]]


def mlp_shapes(c, name, ffn, experts=()):
    up = (*experts, 2, ffn) if c["gated"] else (*experts, ffn)
    shapes = {name + ".up.weight": (*up, c["hidden"]), name + ".down.weight": (*experts, c["hidden"], ffn)}
    if c["bias"]:
        shapes.update({name + ".up.bias": up, name + ".down.bias": (*experts, c["hidden"])})
    return shapes


def moe_shapes(c, name, experts):
    m = c["moe"]
    shapes = {name + ".router.weight": (experts, c["hidden"])}
    shapes.update(mlp_shapes(c, name + ".experts", m["ffn"], (experts,)))
    if m["residual"]:
        shapes.update({name + ".coefficient.weight": (2, c["hidden"]), name + ".coefficient.bias": (2,)})
        shapes.update(mlp_shapes(c, name + ".residual", c["ffn"]))
    if m["shared_ffn"]:
        shapes[name + ".shared_gate.weight"] = (1, c["hidden"])
        shapes.update(mlp_shapes(c, name + ".shared", m["shared_ffn"]))
    return shapes


def make_weights(c, generator):
    head_dim = c["hidden"] // c["heads"]
    per_group = c["heads"] // c["groups"] + 2
    shapes = {"embedding.tokens.weight": (c["vocabulary"], c["hidden"])}
    if c["positions"] == "learned":
        shapes["embedding.positions.weight"] = (c["max_positions"], c["hidden"])
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        shapes[p + "attention.qkv.weight"] = (c["groups"], per_group, head_dim, c["hidden"])
        shapes[p + "attention.projection.weight"] = (c["hidden"], c["hidden"])
        mixture = num_experts(c, i) > 1
        shapes.update(moe_shapes(c, p + "moe", num_experts(c, i)) if mixture else mlp_shapes(c, p + "mlp", c["ffn"]))
        for norm in ("norm_1", "norm_2"):
            shapes[p + norm + ".gain"] = (c["hidden"],)
            if c["norm"] == "layer":
                shapes[p + norm + ".bias"] = (c["hidden"],)
        if c["bias"]:
            shapes[p + "attention.qkv.bias"] = (c["groups"], per_group, head_dim)
            shapes[p + "attention.projection.bias"] = (c["hidden"],)
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


def kept_choices(m, order, chosen, p):
    """Which choices [tokens, topk] of the experts are within their capacity."""
    tokens, topk = chosen.shape
    experts = p.shape[1]
    capacity = max(m["least"], math.ceil(tokens / experts * m["capacity"] * topk))
    kept = torch.zeros_like(chosen, dtype=torch.bool)
    for e in range(experts):
        pairs = [(j, order[t].item(), t) for t in range(tokens) for j in range(topk) if chosen[t, j] == e]
        pairs.sort(key=lambda pair: -p[pair[2], e].item() if topk > 2 else (pair[0], pair[1]))
        for j, _, t in pairs[:capacity]:
            kept[t, j] = True
    return kept


def moe(c, w, name, x, losses):
    m, (b, s, h) = c["moe"], x.shape
    flat = x.reshape(-1, h)
    z = flat @ w[name + ".router.weight"].T
    p = z.softmax(-1)
    experts, topk = p.shape[1], m["topk"]
    chosen = z.topk(topk, -1).indices
    row = torch.arange(b * s)
    kept = kept_choices(m, row % s * b + row // s, chosen, p.detach())
    gates = p.gather(1, chosen) * kept
    if topk > 1:
        gates = gates / gates.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).eps)
    counted = chosen if topk > 2 else chosen[:, :1]
    share = F.one_hot(counted, experts).sum(1).double().mean(0) / counted.shape[1]
    losses.append(m["balance"] * experts * (p.mean(0) * share).sum() + m["z"] * z.logsumexp(-1).pow(2).mean())
    dense = torch.zeros_like(p).scatter(1, chosen, gates)
    one = lambda e: {k: v[e] for k, v in w.items() if k.startswith(name + ".experts.")}
    y = sum(dense[:, e:e + 1] * mlp(c, one(e), name + ".experts", flat) for e in range(experts))
    if m["residual"]:
        weights = F.linear(flat, w[name + ".coefficient.weight"], w[name + ".coefficient.bias"]).softmax(-1)
        y = weights[:, :1] * y + weights[:, 1:] * mlp(c, w, name + ".residual", flat)
    if m["shared_ffn"]:
        y = y + torch.sigmoid(flat @ w[name + ".shared_gate.weight"].T) * mlp(c, w, name + ".shared", flat)
    return y.view_as(x)


def logits(c, w, batch, losses):
    x = w["embedding.tokens.weight"][batch["tokens"]]
    if c["positions"] == "learned":
        x = x + w["embedding.positions.weight"][batch["positions"]]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        n = norm(c, w, p + "norm_1", x)
        x = (n if c["post_norm_residual"] else x) + attention(c, w, p + "attention", n, batch)
        n = norm(c, w, p + "norm_2", x)
        x = (n if c["post_norm_residual"] else x) + (
            moe(c, w, p + "moe", n, losses) if num_experts(c, i) > 1 else mlp(c, w, p + "mlp", n))
    x = norm(c, w, "final_norm", x)
    return x @ w["embedding.tokens.weight" if c["tied"] else "head.weight"].T


def loss_of(c, w, batch):
    """Logits, the loss, and with those of mixtures what is trained on."""
    beside = []
    out = logits(c, w, batch, beside)
    losses = F.cross_entropy(out.flatten(0, 1), batch["labels"].flatten(), reduction="none")
    mask = batch["loss_mask"].double().flatten()
    loss = (losses * mask).sum() / mask.sum()
    return out, loss, loss + sum(beside)


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
        _, loss, total = loss_of(c, weights, batch)
        total.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../tests/golden")
    for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        c = {**BASE, **changes}
        generator = torch.Generator().manual_seed(1000 + number)
        weights = make_weights(c, generator)
        file = {"weight." + n: w.detach().float() for n, w in weights.items()}
        batch = make_batch(c, generator)
        out, loss, total = loss_of(c, weights, batch)
        total.backward()
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
