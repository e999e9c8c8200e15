#!/usr/bin/env python3
"""The losses of a 10M-parameter GPT on real text, ours beside PyTorch's on the same batches from the same weights.

    build/oracle/bin/python tests/long/loss_curve.py BLOOMERY [--steps 500] [--plot docs/loss_curve_fp32.svg]
    build/oracle/bin/python tests/long/loss_curve.py BLOOMERY --device cuda --dtype bf16 [--plot docs/loss_curve_bf16.svg]

fp32: every loss within 1e-5 of PyTorch's, relative. bf16: the mean difference over the last 100 steps is at most twice that
between two PyTorch runs, with attention of cuDNN and of flash-attention."""
import argparse
import contextlib
import json
import pathlib
import tempfile
import time

import svg_plot
import torch
import torch_gpt
from training import SHARED_DATA, Program, flags, make_corpus, metrics

RATE, LOWEST, WARMUP, DECAY, BETAS, CLIP = 2e-4, 2e-5, 0.04, 0.1, (0.9, 0.95), 1.0
HEADS = 5
MODEL = dict(num_layers=6, hidden_size=64 * HEADS, num_attention_heads=HEADS, hidden_dropout=0, attention_dropout=0)
LAST = 100


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--seq-length", type=int, help="none: 64 on the CPU, 512 on a GPU")
    parser.add_argument("--batch", type=int, help="none: 4 on the CPU, 8 on a GPU")
    parser.add_argument("--text", default=SHARED_DATA / "corpora/sotu/sotu.jsonl.xz", help="JSONL")
    parser.add_argument("--plot", help="an SVG file to write")
    parser.add_argument("--record", help="a JSON file for the losses")
    a = parser.parse_args()
    a.seq_length = a.seq_length or (64 if a.device == "cpu" else 512)
    a.batch = a.batch or (4 if a.device == "cpu" else 8)
    return a


def our_flags(a, corpus):
    return corpus.flags() + flags(
        **MODEL, seq_length=a.seq_length, max_position_embeddings=a.seq_length, micro_batch_size=a.batch,
        global_batch_size=a.batch, dtype=a.dtype, split="100,0,0", eval_iters=0, log_interval=1, save_interval=a.steps,
        lr_decay_style="cosine", clip_grad=CLIP, weight_decay=DECAY, adam_beta1=BETAS[0], adam_beta2=BETAS[1])


def first_weights(program, a, corpus, folder):
    """Weights before training: after one step at learning rate zero."""
    program.pretrain(*our_flags(a, corpus), *flags(save=folder, train_iters=1, lr=0))
    return torch_gpt.read_checkpoint(folder / "step-1")


def batches(program, a, corpus):
    count = a.steps * a.batch
    run = program("data", "samples", *flags(data_path=corpus.prefix, split="100,0,0", seq_length=a.seq_length,
                                            num_samples=count, count=count, json=True))
    samples = torch.tensor([json.loads(line)["tokens"] for line in run.out.splitlines()])
    return samples.view(a.steps, a.batch, a.seq_length + 1)


def our_losses(program, a, corpus, folder):
    begin = time.time()
    program.pretrain(*our_flags(a, corpus), *flags(save=folder, train_iters=a.steps, lr=RATE, min_lr=LOWEST,
                                                   lr_warmup_fraction=WARMUP), timeout=3600)
    print(f"bloomery: {time.time() - begin:.0f} s")
    rows = [row for row in metrics(folder) if row["kind"] == "train"]
    assert [row["iteration"] for row in rows] == list(range(1, a.steps + 1))
    return [row["lm_loss"] for row in rows], [row["grad_norm"] for row in rows]


def torch_losses(a, weights, samples, name, context):
    begin = time.time()
    device = torch.device(a.device)
    dtype = torch.bfloat16 if a.dtype == "bf16" else torch.float32
    training = torch_gpt.Training({n: t.to(device) for n, t in weights.items()}, HEADS, dtype, DECAY, BETAS, CLIP)
    losses, norms = [], []
    with context:
        for i, batch in enumerate(samples.to(device)):
            rate = torch_gpt.megatron_rate(i * a.batch, RATE, LOWEST, WARMUP * a.steps * a.batch, a.steps * a.batch)
            loss, norm = training.step(rate, batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
            losses.append(loss)
            norms.append(norm)
    print(f"PyTorch, {name}: {time.time() - begin:.0f} s")
    return losses, norms


def attention_backend(name):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(getattr(SDPBackend, name))


def mean_difference(first, second):
    pairs = list(zip(first, second))[-LAST:]
    return sum(abs(x - y) for x, y in pairs) / len(pairs)


def numbered(values):
    return list(enumerate(values, 1))


def compare_fp32(a, weights, samples, ours, our_norms):
    theirs, norms = torch_losses(a, weights, samples, "fp32", contextlib.nullcontext())
    relative = [abs(x - y) / abs(y) for x, y in zip(ours, theirs)]
    worst = max(range(a.steps), key=lambda i: relative[i])
    of_norms = max(abs(x - y) / abs(y) for x, y in zip(our_norms, norms))
    print(f"loss {ours[0]:.6f} to {ours[-1]:.6f} (PyTorch {theirs[-1]:.6f}); largest relative difference "
          f"{relative[worst]:.2e} at step {worst + 1}; of gradient norms {of_norms:.2e}")
    panels = [dict(title=f"loss, {a.steps} steps in fp32 on the CPU",
                   curves={"bloomery": numbered(ours), "PyTorch": numbered(theirs)}),
              dict(title="relative difference", curves={"bloomery - PyTorch": numbered(relative)}, logarithmic=True,
                   limit=("1e-5", 1e-5))]
    return relative[worst] <= 1e-5, panels, {"bloomery": ours, "pytorch": theirs}


def compare_bf16(a, weights, samples, ours):
    # On a CPU, for trying the test itself, the two runs differ in how attention is computed there.
    names = ["CUDNN_ATTENTION", "FLASH_ATTENTION"] if a.device == "cuda" else ["MATH", "FLASH_ATTENTION"]
    runs = {name: torch_losses(a, weights, samples, name, attention_backend(name))[0] for name in names}
    first, second = runs.values()
    between = mean_difference(first, second)
    to_ours = [mean_difference(ours, run) for run in runs.values()]
    print(f"loss {ours[0]:.6f} to {ours[-1]:.6f} (PyTorch {first[-1]:.6f} and {second[-1]:.6f}); mean difference over the last "
          f"{LAST} steps: {between:.3e} between PyTorch's runs, ours {to_ours[0]:.3e} and {to_ours[1]:.3e} to them")
    label = {"CUDNN_ATTENTION": "cuDNN", "FLASH_ATTENTION": "flash", "MATH": "math"}
    panels = [dict(title=f"loss, {a.steps} steps in bf16", curves={"bloomery": numbered(ours), **{
                  f"PyTorch, {label[n]}": numbered(r) for n, r in runs.items()}}),
              dict(title="difference of losses", logarithmic=True, curves={
                  f"bloomery and PyTorch ({label[names[1]]})": numbered(abs(x - y) for x, y in zip(ours, second)),
                  f"PyTorch: {label[names[0]]} and {label[names[1]]}": numbered(abs(x - y) for x, y in zip(first, second))})]
    return max(to_ours) <= 2 * between, panels, {"bloomery": ours, **runs}


def main():
    a = arguments()
    torch_gpt.check_against_golden(pathlib.Path(__file__).parents[1] / "golden/gpt_gpt2.safetensors")
    program = Program(a.program, a.device)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        corpus = make_corpus(program, folder, a.text, vocabulary=8192)
        weights = first_weights(program, a, corpus, folder / "first")
        print(f"{sum(t.numel() for t in weights.values()) / 1e6:.2f}M parameters, {a.steps} steps of {a.batch} x {a.seq_length}")
        samples = batches(program, a, corpus)
        losses, norms = our_losses(program, a, corpus, folder / "run")
    compare = compare_fp32(a, weights, samples, losses, norms) if a.dtype == "fp32" else compare_bf16(a, weights, samples, losses)
    good, panels, record = compare
    if a.record:
        pathlib.Path(a.record).write_text(json.dumps(record))
    if a.plot:
        svg_plot.write(a.plot, panels)
    assert good, "the losses differ by more than allowed"


main()
