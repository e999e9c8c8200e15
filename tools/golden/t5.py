#!/usr/bin/env python3
"""Makes tests/golden/t5_*.safetensors: small T5s computed by PyTorch in fp64.

Each file holds the weights, one batch of padded sequences, its logits, loss and all gradients, under our names. Needs torch
and safetensors. Usage: tools/golden/t5.py [OUTPUT_FOLDER]"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

BASE = dict(encoder_layers=2, decoder_layers=2, hidden=20, heads=4, head_dim=6, ffn=24, vocabulary=43, max_positions=20,
            sequences=3, encoder_length=14, decoder_length=9, norm="layer", epsilon=1e-5, activation="gelu_tanh", gated=False,
            bias=True, tied=True, buckets=0, distance=0, scaled=True, head_bias=True, head_scale=False, cross_mask=True)

CONFIGURATIONS = {
    "megatron": {},
    "unmasked": dict(cross_mask=False, decoder_layers=1),
    "v10": dict(norm="rms", epsilon=1e-6, activation="relu", bias=False, buckets=8, distance=10, scaled=False, head_bias=False,
                head_scale=True, head_dim=5),
    "v11": dict(norm="rms", epsilon=1e-6, gated=True, bias=False, tied=False, buckets=12, distance=16, scaled=False,
                head_bias=False, encoder_layers=1),
}


def make_weights(c, generator):
    h, n, d, f = c["hidden"], c["heads"], c["head_dim"], c["ffn"]
    shapes = {"embedding.tokens.weight": (c["vocabulary"], h)}
    if not c["buckets"]:
        shapes["embedding.positions.weight"] = (c["max_positions"], h)

    def norm(name):
        shapes[name + ".gain"] = (h,)
        if c["norm"] == "layer":
            shapes[name + ".bias"] = (h,)

    def linear(name, out, size):
        shapes[name + ".weight"] = (*out, size)
        if c["bias"]:
            shapes[name + ".bias"] = out

    for stack in ("encoder", "decoder"):
        if c["buckets"]:
            shapes[stack + ".relative_bias.weight"] = (c["buckets"], n)
        for i in range(c[stack + "_layers"]):
            p = f"{stack}.{i}."
            norm(p + "norm_1")
            linear(p + "attention.qkv", (n, 3, d), h)
            linear(p + "attention.projection", (h,), n * d)
            if stack == "decoder":
                norm(p + "cross_norm")
                linear(p + "cross.query", (n, 1, d), h)
                linear(p + "cross.key_value", (n, 2, d), h)
                linear(p + "cross.projection", (h,), n * d)
            norm(p + "norm_2")
            linear(p + "mlp.up", (2, f) if c["gated"] else (f,), h)
            linear(p + "mlp.down", (h,), f)
    norm("encoder.final_norm")
    norm("final_norm")
    if c["head_bias"]:
        shapes["head.bias"] = (c["vocabulary"],)
    if not c["tied"]:
        shapes["head.weight"] = (c["vocabulary"], h)
    weights = {}
    for name, shape in shapes.items():
        w = torch.randn(shape, generator=generator, dtype=torch.float32) * (0.5 if "relative" in name else 0.2)
        weights[name] = (w + 1 if name.endswith("gain") else w).double().requires_grad_()
    return weights


def norm(c, w, name, x):
    if c["norm"] == "rms":
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + c["epsilon"]) * w[name + ".gain"]
    return F.layer_norm(x, x.shape[-1:], w[name + ".gain"], w[name + ".bias"], c["epsilon"])


def linear(w, name, x):
    weight = w[name + ".weight"]
    y = torch.einsum("bsh,...h->bs...", x, weight)
    return y + w[name + ".bias"] if name + ".bias" in w else y


def bucket(c, distance, both_ways):
    """T5's rule for key place - query place."""
    buckets, first = c["buckets"], 0
    if both_ways:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(c["distance"] / exact) * (buckets - exact))
    return first + min(buckets - 1, far)


def attend(c, q, k, v, seen, bias=None):
    scores = torch.einsum("bqnd,bknd->bnqk", q, k)
    scores = scores / math.sqrt(c["head_dim"]) if c["scaled"] else scores
    scores = scores if bias is None else scores + bias
    return torch.einsum("bnqk,bknd->bqnd", scores.masked_fill(~seen[:, None], -math.inf).softmax(-1), v).flatten(2)


def self_attention(c, w, stack, name, x, seen):
    qkv = linear(w, name + ".qkv", x)
    bias = None
    if c["buckets"]:
        s = x.shape[1]
        table = [[bucket(c, key - query, stack == "encoder") for key in range(s)] for query in range(s)]
        bias = w[stack + ".relative_bias.weight"][torch.tensor(table)].permute(2, 0, 1)
    return linear(w, name + ".projection", attend(c, *qkv.unbind(3), seen, bias))


def cross_attention(c, w, name, x, encoder, seen):
    q, kv = linear(w, name + ".query", x), linear(w, name + ".key_value", encoder)
    return linear(w, name + ".projection", attend(c, q[:, :, :, 0], *kv.unbind(3), seen))


def mlp(c, w, name, x):
    act = F.relu if c["activation"] == "relu" else lambda y: F.gelu(y, approximate="tanh")
    y = linear(w, name + ".up", x)
    return linear(w, name + ".down", act(y[:, :, 0]) * y[:, :, 1] if c["gated"] else act(y))


def stack(c, w, name, tokens, seen, encoder=None, cross_seen=None):
    x = w["embedding.tokens.weight"][tokens]
    if not c["buckets"]:
        x = x + w["embedding.positions.weight"][: tokens.shape[1]]
    for i in range(c[name + "_layers"]):
        p = f"{name}.{i}."
        x = x + self_attention(c, w, name, p + "attention", norm(c, w, p + "norm_1", x), seen)
        if encoder is not None:
            x = x + cross_attention(c, w, p + "cross", norm(c, w, p + "cross_norm", x), encoder, cross_seen)
        x = x + mlp(c, w, p + "mlp", norm(c, w, p + "norm_2", x))
    return norm(c, w, "encoder.final_norm" if encoder is None else "final_norm", x)


def logits(c, w, batch):
    se, sd = c["encoder_length"], c["decoder_length"]
    keys = torch.arange(se)[None, None, :] < batch["encoder_lengths"][:, None, None]
    causal = torch.arange(sd)[None, :] <= torch.arange(sd)[:, None]
    decoder = causal[None] & (torch.arange(sd)[None, None, :] < batch["lengths"][:, None, None])
    encoder = stack(c, w, "encoder", batch["encoder_tokens"], keys.expand(-1, se, -1))
    cross = keys.expand(-1, sd, -1) if c["cross_mask"] else torch.ones(1, sd, se, dtype=torch.bool)
    x = stack(c, w, "decoder", batch["tokens"], decoder, encoder, cross)
    x = x * c["hidden"] ** -0.5 if c["head_scale"] else x
    y = x @ w["embedding.tokens.weight" if c["tied"] else "head.weight"].T
    return y + w["head.bias"] if c["head_bias"] else y


def make_batch(c, generator):
    def integers(limit, *shape, low=0):
        return torch.randint(low, limit, shape, generator=generator)

    b, se, sd = c["sequences"], c["encoder_length"], c["decoder_length"]
    batch = dict(encoder_tokens=integers(c["vocabulary"], b, se), tokens=integers(c["vocabulary"], b, sd),
                 labels=integers(c["vocabulary"], b, sd), encoder_lengths=integers(se, b, low=3),
                 lengths=integers(sd, b, low=2))
    batch["encoder_lengths"][0], batch["lengths"][-1] = se, sd
    batch["loss_mask"] = (torch.arange(sd)[None] < batch["lengths"][:, None]).float()
    return batch


def stored(c, batch):
    """As our models read it: instead of lengths the end of the keys that each token sees."""
    def ends(lengths, length):
        return batch[lengths][:, None].expand(-1, c[length]).contiguous()

    return {"tokens": batch["tokens"], "labels": batch["labels"], "loss_mask": batch["loss_mask"],
            "key_end": ends("lengths", "decoder_length"), "encoder.tokens": batch["encoder_tokens"],
            "encoder.key_end": ends("encoder_lengths", "encoder_length"),
            "encoder_key_end": ends("encoder_lengths", "decoder_length")}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../tests/golden")
    for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
        c = {**BASE, **changes}
        generator = torch.Generator().manual_seed(3000 + number)
        weights = make_weights(c, generator)
        batch = make_batch(c, generator)
        out = logits(c, weights, batch)
        mask = batch["loss_mask"].double().flatten()
        losses = F.cross_entropy(out.flatten(0, 1), batch["labels"].flatten(), reduction="none")
        loss = (losses * mask).sum() / mask.sum()
        loss.backward()
        file = {"weight." + n: w.detach().float() for n, w in weights.items()}
        file.update({"grad." + n: w.grad.clone() for n, w in weights.items()})
        file.update({"batch." + n: t if t.is_floating_point() else t.int() for n, t in stored(c, batch).items()})
        file["logits"], file["loss"] = out.detach().contiguous(), loss.detach().reshape(1)
        save_file(file, os.path.join(folder, f"t5_{name}.safetensors"), metadata={"config": json.dumps(c)})
        print(f"{name}: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
