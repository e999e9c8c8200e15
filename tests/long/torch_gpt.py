"""A GPT-2 shaped model and its training in plain PyTorch, with the names of our checkpoints: what loss_curve.py holds our
losses against. It shares no code with bloomery."""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I32": torch.int32}


def load_file(path):
    """The tensors of a safetensors file, by name."""
    data = bytearray(pathlib.Path(path).read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(data, dtype=DTYPES[entry["dtype"]], offset=begin + entry["data_offsets"][0],
                                   count=math.prod(entry["shape"])).reshape(entry["shape"])
            for name, entry in header.items()}


def read_checkpoint(folder):
    """All weights of a native checkpoint of one rank as fp32; moments are left out."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == "bloomery-checkpoint"
    tensors = load_file(folder / "rank-0.safetensors")
    return {name: tensor.float() for name, tensor in tensors.items() if "/" not in name}


def is_decayed(name, tensor):
    """Megatron's rule: biases and whatever has one dimension are not decayed."""
    return tensor.dim() > 1 and not name.endswith("bias")


class Gpt:
    def __init__(self, weights, heads, epsilon=1e-5):
        self.w, self.heads, self.epsilon = weights, heads, epsilon
        self.layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".gain"], self.w[name + ".bias"], self.epsilon)

    def linear(self, name, x):
        weight, bias = self.w[name + ".weight"], self.w[name + ".bias"]
        return F.linear(x, weight.reshape(-1, weight.shape[-1]), bias.reshape(-1))

    def attention(self, name, x):
        b, s, h = x.shape
        qkv = self.linear(name + ".qkv", x).view(b, s, self.heads, 3, h // self.heads)
        q, k, v = (qkv[:, :, :, i].transpose(1, 2) for i in range(3))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.linear(name + ".projection", mixed.transpose(1, 2).reshape(b, s, h))

    def logits(self, tokens):
        positions = self.w["embedding.positions.weight"][: tokens.shape[1]]
        x = F.embedding(tokens, self.w["embedding.tokens.weight"]) + positions
        for i in range(self.layers):
            block = f"blocks.{i}."
            x = x + self.attention(block + "attention", self.norm(block + "norm_1", x))
            up = F.gelu(self.linear(block + "mlp.up", self.norm(block + "norm_2", x)), approximate="tanh")
            x = x + self.linear(block + "mlp.down", up)
        return F.linear(self.norm("final_norm", x), self.w["embedding.tokens.weight"])

    def loss(self, tokens, labels, mask=None):
        logits = self.logits(tokens).flatten(0, 1)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        losses = F.cross_entropy(logits, labels.flatten(), reduction="none")
        return losses.mean() if mask is None else (losses * mask.flatten()).sum() / mask.sum()


def clip(gradients, largest):
    """Megatron's rule; returns the norm before. Summed in fp64: PyTorch's own norm of an fp32 tensor on the CPU is wrong in the
    fifth digit for millions of elements, and every update depends on it."""
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    for gradient in gradients:
        gradient.mul_(min(1.0, largest / (norm + 1e-6)))
    return norm


def megatron_rate(x, peak, lowest, warmup, decay):
    """Cosine schedule at x samples; the step that follows uses it."""
    if warmup > 0 and x <= warmup:
        return peak * x / warmup
    if x > decay:
        return lowest
    return lowest + (peak - lowest) * 0.5 * (math.cos(math.pi * (x - warmup) / (decay - warmup)) + 1)


class Training:
    """AdamW on fp32 master weights (fp64 when they are given so); `dtype` is what the model computes in."""

    def __init__(self, weights, heads, dtype, weight_decay, betas, clip):
        self.master = {name: tensor.detach().clone().requires_grad_() for name, tensor in weights.items()}
        same = dtype == next(iter(weights.values())).dtype
        self.values = self.master if same else {name: tensor.detach().to(dtype).requires_grad_()
                                                for name, tensor in self.master.items()}
        self.model, self.clip = Gpt(self.values, heads), clip
        decayed = [t for n, t in self.master.items() if is_decayed(n, t)]
        plain = [t for n, t in self.master.items() if not is_decayed(n, t)]
        self.optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=weight_decay),
                                            dict(params=plain, weight_decay=0.0)], betas=betas, eps=1e-8)

    def step(self, rate, tokens, labels, mask=None):
        for tensor in self.values.values():
            tensor.grad = None
        loss = self.model.loss(tokens, labels, mask)
        loss.backward()
        if self.values is not self.master:
            for name, tensor in self.master.items():
                tensor.grad = self.values[name].grad.to(tensor.dtype)
        norm = clip([tensor.grad for tensor in self.master.values()], self.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.values is not self.master:
            with torch.no_grad():
                for name, tensor in self.values.items():
                    tensor.copy_(self.master[name])
        return loss.item(), norm


def check_against_golden(path):
    """The model and its training against numbers that another PyTorch program wrote (tools/golden/gpt.py)."""
    golden = load_file(path)
    weights = {n.removeprefix("weight."): t.double() for n, t in golden.items() if n.startswith("weight.")}
    training = Training(weights, 4, torch.float64, weight_decay=0.1, betas=(0.9, 0.95), clip=1.0)
    logits = training.model.logits(golden["batch.tokens"].long())
    torch.testing.assert_close(logits, golden["logits"], rtol=1e-10, atol=1e-10)
    for i in range(50):
        batch = [golden["steps." + key][i] for key in ("tokens", "labels", "loss_mask")]
        loss, norm = training.step(3e-3, batch[0].long(), batch[1].long(), batch[2].double())
        assert math.isclose(loss, golden["losses"][i], rel_tol=1e-9) and math.isclose(norm, golden["norms"][i], rel_tol=1e-9)
