#!/usr/bin/env python3
"""Makes tests/golden/bert_*.safetensors: small BERTs computed by PyTorch in fp64.

Each file holds the weights, one batch of padded pairs, its logits, both losses and all gradients of their sum; of models with
the head of a task the outputs of that head and its loss.
Needs torch and safetensors. Usage: tools/golden/bert.py [OUTPUT_FOLDER]"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

BASE = dict(layers=2, hidden=32, heads=4, ffn=48, vocabulary=61, max_positions=24, sequences=3, length=12, epsilon=1e-5,
            activation="tanh", head_activation="none", after_norm=False, binary_head=True, untied=False, task="none", classes=2)
CONFIGURATIONS = {
    "megatron": {},
    "original": dict(after_norm=True, activation="none", epsilon=1e-12),
    "one_segment": dict(binary_head=False, head_activation="tanh", untied=True),
    "classes": dict(layers=1, task="classification", classes=3),
    "score": dict(layers=1, task="regression", after_norm=True, activation="none"),
    "choice": dict(layers=1, task="multiple-choice", sequences=8, after_norm=True, activation="none", epsilon=1e-12),
}


def shapes(c):
    h, head = c["hidden"], c["hidden"] // c["heads"]
    found = {"embedding.tokens.weight": (c["vocabulary"], h), "embedding.positions.weight": (c["max_positions"], h)}
    task = c["task"] != "none"
    norms = ["final_norm"] if task else ["final_norm", "head.norm"]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        norms += [p + "norm_1", p + "norm_2"]
        found.update({p + "attention.qkv.weight": (c["heads"], 3, head, h), p + "attention.qkv.bias": (c["heads"], 3, head),
                      p + "attention.projection.weight": (h, h), p + "attention.projection.bias": (h,),
                      p + "mlp.up.weight": (c["ffn"], h), p + "mlp.up.bias": (c["ffn"],),
                      p + "mlp.down.weight": (h, c["ffn"]), p + "mlp.down.bias": (h,)})
    found.update({f"{n}.{part}": (h,) for n in norms for part in ("gain", "bias")})
    if task:
        outputs = c["classes"] if c["task"] == "classification" else 1
        found.update({"embedding.token_types.weight": (2, h), "pooler.weight": (h, h), "pooler.bias": (h,),
                      task_head(c) + ".weight": (outputs, h), task_head(c) + ".bias": (outputs,)})
        return found
    found.update({"head.transform.weight": (h, h), "head.transform.bias": (h,), "head.bias": (c["vocabulary"],)})
    if c["untied"]:
        found["head.weight"] = (c["vocabulary"], h)
    if c["binary_head"]:
        found.update({"embedding.token_types.weight": (2, h), "pooler.weight": (h, h), "pooler.bias": (h,),
                      "binary_head.weight": (2, h), "binary_head.bias": (2,)})
    return found


def task_head(c):
    return "multichoice_head" if c["task"] == "multiple-choice" else "classification_head"


def task_outputs(c, w, x):
    pooled = torch.tanh(F.linear(x[:, 0], w["pooler.weight"], w["pooler.bias"]))
    outputs = F.linear(pooled, w[task_head(c) + ".weight"], w[task_head(c) + ".bias"])
    return outputs.view(-1, 4) if c["task"] == "multiple-choice" else outputs


def norm(c, w, name, x):
    return F.layer_norm(x, x.shape[-1:], w[name + ".gain"], w[name + ".bias"], c["epsilon"])


def attention(c, w, p, x, lengths):
    b, s, h = x.shape
    q, k, v = (torch.einsum("bsh,ndh->bnsd", x, w[p + "qkv.weight"][:, i]) + w[p + "qkv.bias"][:, i][None, :, None]
               for i in range(3))
    scores = q @ k.mT / math.sqrt(h // c["heads"])
    scores = scores.masked_fill(torch.arange(s)[None, None, None] >= lengths[:, None, None, None], -math.inf)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, h)
    return F.linear(y, w[p + "projection.weight"], w[p + "projection.bias"])


def mlp(c, w, p, x):
    up = F.gelu(F.linear(x, w[p + "up.weight"], w[p + "up.bias"]), approximate=c["activation"])
    return F.linear(up, w[p + "down.weight"], w[p + "down.bias"])


def forward(c, w, batch):
    x = w["embedding.tokens.weight"][batch["tokens"]] + w["embedding.positions.weight"][:c["length"]]
    if c["binary_head"]:
        x = x + w["embedding.token_types.weight"][batch["token_types"]]
    for i in range(c["layers"]):
        p = f"blocks.{i}."
        for name, branch in (("norm_1", lambda y: attention(c, w, p + "attention.", y, batch["lengths"])),
                             ("norm_2", lambda y: mlp(c, w, p + "mlp.", y))):
            y = norm(c, w, p + name, x)
            x = (y if c["after_norm"] else x) + branch(y)
    x = norm(c, w, "final_norm", x)
    if c["task"] != "none":
        return task_outputs(c, w, x), None
    t = F.gelu(F.linear(x, w["head.transform.weight"], w["head.transform.bias"]), approximate=c["head_activation"])
    table = w["head.weight"] if c["untied"] else w["embedding.tokens.weight"]
    logits = F.linear(norm(c, w, "head.norm", t), table, w["head.bias"])
    pooled = torch.tanh(F.linear(x[:, 0], w["pooler.weight"], w["pooler.bias"])) if c["binary_head"] else None
    return logits, F.linear(pooled, w["binary_head.weight"], w["binary_head.bias"]) if c["binary_head"] else None


def make_batch(c, generator):
    b, s = c["sequences"], c["length"]
    lengths = torch.tensor([s, s // 2, s - 3, s - 1, s, s - 5, 3, s - 2][:b])
    place = torch.arange(s)[None]
    inside = place < lengths[:, None]
    mask = ((torch.rand(b, s, generator=generator) < 0.3) & inside).float()
    mask[:, 1] = 1
    mask[1] = 0  # a sequence of which nothing is hidden
    labels = torch.randint(c["vocabulary"], (b, s), generator=generator)
    if c["task"] != "none":
        truth = (dict(scores=torch.randn(b, generator=generator)) if c["task"] == "regression" else
                 dict(classes=torch.tensor([2, 0, 1])) if c["task"] == "classification" else dict(classes=torch.tensor([3, 1])))
        return dict(tokens=torch.randint(c["vocabulary"], (b, s), generator=generator) * inside,
                    token_types=((place >= 4) & inside).long(), lengths=lengths, **truth)
    return dict(tokens=torch.randint(c["vocabulary"], (b, s), generator=generator) * inside,
                token_types=((place >= 4) & inside).long(), labels=torch.where(mask > 0, labels, -1), loss_mask=mask,
                lengths=lengths, is_random=torch.tensor([0, 1, 1]))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../tests/golden")
    for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
        c = {**BASE, **changes}
        generator = torch.Generator().manual_seed(2000 + number)
        weights = {}
        for tensor, shape in shapes(c).items():
            numbers = torch.randn(shape, generator=generator) * 0.15 + (1 if tensor.endswith("gain") else 0)
            weights[tensor] = numbers.double().requires_grad_()
        batch = make_batch(c, generator)
        logits, segments = forward(c, weights, batch)
        if c["task"] != "none":
            losses = [F.mse_loss(logits[:, 0], batch["scores"].double()) if "scores" in batch else F.cross_entropy(logits, batch["classes"])]
        else:
            hidden = batch["loss_mask"].bool()
            losses = [F.cross_entropy(logits[hidden], batch["labels"][hidden])]
        if segments is not None:
            losses.append(F.cross_entropy(segments, batch["is_random"]))
        sum(losses).backward()
        file = {"weight." + n: w.detach().float() for n, w in weights.items()}
        file.update({"grad." + n: w.grad for n, w in weights.items()})
        file["logits"], file["losses"] = logits.detach().contiguous(), torch.stack(losses).detach()
        if segments is not None:
            file["segment_logits"] = segments.detach().contiguous()
        batch["key_end"] = batch.pop("lengths")[:, None].expand(-1, c["length"]).contiguous()
        file.update({"batch." + k: v if v.is_floating_point() else v.int() for k, v in batch.items()})
        save_file(file, os.path.join(folder, f"bert_{name}.safetensors"), metadata={"config": json.dumps(c)})
        print(f"{name}: losses {[round(x.item(), 6) for x in losses]}")


if __name__ == "__main__":
    main()
