#!/usr/bin/env python3
"""Makes tests/golden/ict_*.safetensors: small retrievers computed by PyTorch in fp64.

Each file holds the weights, one batch of padded queries and contexts, their vectors, the loss, the shares of queries that
are found, and all gradients; with several contexts of each query, some of which are missing, how many queries are found and at which ranks. Needs torch and safetensors. Usage: tools/golden/ict.py [OUTPUT_FOLDER]"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from bert import attention, mlp, norm

BASE = dict(layers=2, hidden=16, heads=2, ffn=24, vocabulary=37, max_positions=24, sequences=6, length=12, epsilon=1e-5,
            activation="tanh", after_norm=False, shared=False, projection=0, scaled=False, topk=[1, 2, 5])
CONFIGURATIONS = {
    "two_towers": dict(projection=12),
    "shared": dict(shared=True, scaled=True, layers=1),
    "original": dict(after_norm=True, activation="none", layers=1, projection=9, scaled=True),
    "questions": dict(projection=9, layers=1, scaled=True, contexts=3),
}


def shapes(c, tower):
    h, head = c["hidden"], c["hidden"] // c["heads"]
    found = {"embedding.tokens.weight": (c["vocabulary"], h), "embedding.positions.weight": (c["max_positions"], h),
             "embedding.token_types.weight": (2, h)}
    norms = ["final_norm"]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        norms += [p + "norm_1", p + "norm_2"]
        found.update({p + "attention.qkv.weight": (c["heads"], 3, head, h), p + "attention.qkv.bias": (c["heads"], 3, head),
                      p + "attention.projection.weight": (h, h), p + "attention.projection.bias": (h,),
                      p + "mlp.up.weight": (c["ffn"], h), p + "mlp.up.bias": (c["ffn"],),
                      p + "mlp.down.weight": (h, c["ffn"]), p + "mlp.down.bias": (h,)})
    found.update({f"{n}.{part}": (h,) for n in norms for part in ("gain", "bias")})
    if c["projection"]:
        found.update({"projection.weight": (c["projection"], h), "projection.bias": (c["projection"],)})
    return {tower + name: shape for name, shape in found.items()}


def embed(c, weights, tower, tokens, lengths):
    w = {name[len(tower):]: value for name, value in weights.items() if name.startswith(tower)}
    x = w["embedding.tokens.weight"][tokens] + w["embedding.positions.weight"][:c["length"]] + w["embedding.token_types.weight"][0]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        for name, branch in (("norm_1", lambda y: attention(c, w, p + "attention.", y, lengths)),
                             ("norm_2", lambda y: mlp(c, w, p + "mlp.", y))):
            y = norm(c, w, p + name, x)
            x = (y if c["after_norm"] else x) + branch(y)
    first = norm(c, w, "final_norm", x)[:, 0]
    return F.linear(first, w["projection.weight"], w["projection.bias"]) if c["projection"] else first


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../tests/golden")
    for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
        c = {**BASE, **changes}
        contexts = c.get("contexts", 1)
        generator = torch.Generator().manual_seed(3000 + number)
        towers = ["shared.", "shared."] if c["shared"] else ["query.", "context."]
        weights = {}
        for tensor, shape in {k: v for tower in towers for k, v in shapes(c, tower).items()}.items():
            numbers = torch.randn(shape, generator=generator) * 0.15 + (1 if tensor.endswith("gain") else 0)
            weights[tensor] = numbers.double().requires_grad_()
        b, s = c["sequences"], c["length"]
        file, vectors = {}, []
        for tower, prefix in zip(towers, ("", "encoder.")):
            rows = b * contexts if prefix else b
            lengths = torch.randint(2, s + 1, (rows,), generator=generator)
            lengths[0] = s
            tokens = torch.randint(c["vocabulary"], (rows, s), generator=generator) * (torch.arange(s)[None] < lengths[:, None])
            file[f"batch.{prefix}tokens"] = tokens.int()
            file[f"batch.{prefix}key_end"] = lengths[:, None].expand(-1, s).int().contiguous()
            vectors.append(embed(c, weights, tower, tokens, lengths))
        scores = vectors[0] @ vectors[1].T / (math.sqrt(c["hidden"]) if c["scaled"] else 1)
        if contexts == 1:
            file["batch.encoder_key_end"] = file["batch.encoder.key_end"].clone()
            loss = F.cross_entropy(scores, torch.arange(b))
            best = scores.topk(b).indices
            accuracies = [100 * sum(int(i in best[i, :k]) for i in range(b)) / b for k in c["topk"]]
        else:
            present = torch.ones(b * contexts)
            present[[4, 5, 9, 11]] = 0  # two negatives; the context of query 3, and its second negative
            own = torch.arange(b) * contexts
            counted = present[own] > 0
            scores = scores.masked_fill(present[None] == 0, -math.inf)
            loss = F.cross_entropy(scores[counted], own[counted])
            ranks = [int((row > row[i]).sum()) if there else -1 for row, i, there in zip(scores, own, counted)]
            accuracies = [float(ranks.count(0))]
            file.update({"batch.encoder.sample_weights": present, "ranks": torch.tensor(ranks).int()})
        loss.backward()
        file.update({"weight." + n: w.detach().float() for n, w in weights.items()})
        file.update({"grad." + n: w.grad for n, w in weights.items()})
        file.update(queries=vectors[0].detach().contiguous(), contexts=vectors[1].detach().contiguous(),
                    loss=loss.detach()[None], accuracies=torch.tensor(accuracies).double())
        save_file(file, os.path.join(folder, f"ict_{name}.safetensors"), metadata={"config": json.dumps(c)})
        print(f"{name}: loss {loss.item():.6f}, accuracies {accuracies}")


if __name__ == "__main__":
    main()
