#!/usr/bin/env python3
"""Generation by transformers beside `bloomery generate`, on a GPT-2 124M with random weights.

    bench/peers/generate_torch.py BLOOMERY [--new-tokens 128] [--rounds 2]

Greedy texts in fp32 must be the same, token by token; where they part, the two likeliest tokens must be as good as equal.
Then tokens per second of transformers' generate in bf16, greedy at batch 1 and sampled at batch 64; `bloomery bench
generate` has ours."""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

VOCABULARY = 50257


def make_model():
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(eos_token_id=VOCABULARY - 1, bos_token_id=VOCABULARY - 1,
                                       pad_token_id=VOCABULARY - 1))
    with torch.no_grad():
        model.transformer.wte.weight.normal_(0, 0.2)
    return model.eval().cuda()


def ours(program, folder, prompts, new_tokens):
    (folder / "prompts").write_text("".join(" ".join(map(str, prompt)) + "\n" for prompt in prompts))
    command = [program, "generate", "--load", folder, "--tokenizer-type", "NullTokenizer", "--vocab-size",
               str(VOCABULARY - 1), "--prompt-file", folder / "prompts", "--json", "--out-seq-length", str(new_tokens),
               "--greedy", "--dtype", "fp32", "--device", "cuda", "--batch-size", str(len(prompts))]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [json.loads(line)["ids"] for line in lines]


def theirs(model, prompts, new_tokens, **options):
    rows = torch.tensor(prompts, device="cuda")
    with torch.no_grad():
        return model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=new_tokens,
                              min_new_tokens=new_tokens, **options)[:, rows.shape[1]:].tolist()


def compare(model, prompts, found, expected):
    """Counts texts that are the same, and those that part where two tokens are as good as equal."""
    same = parted = 0
    for prompt, a, b in zip(prompts, found, expected, strict=True):
        if a == b:
            same += 1
            continue
        at = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
        with torch.no_grad():
            logits = model(torch.tensor([prompt + b[:at]], device="cuda")).logits[0, -1]
        gap = (logits[b[at]] - logits[a[at]]).abs().item()
        assert gap < 1e-3, f"token {at}: {a[at]} instead of {b[at]}, whose logits differ by {gap}"
        parted += 1
    print(f"greedy fp32: {same} of {len(prompts)} texts the same, {parted} part at a tie")


def rate(model, batch, new_tokens, rounds, **options):
    prompts = torch.randint(0, VOCABULARY - 1, (batch, 64)).tolist()
    best = 0.0
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        theirs(model, prompts, new_tokens, **options)
        torch.cuda.synchronize()
        best = max(best, batch * new_tokens / (time.perf_counter() - start))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.backends.cuda.matmul.allow_tf32 = False
    model = make_model()
    torch.manual_seed(2)
    for batch, length in ((1, 5), (3, 40), (16, 17)):
        prompts = torch.randint(0, VOCABULARY - 1, (batch, length)).tolist()
        with tempfile.TemporaryDirectory() as root:
            model.save_pretrained(root)
            found = ours(arguments.program, pathlib.Path(root), prompts, arguments.new_tokens)
        compare(model, prompts, found, theirs(model, prompts, arguments.new_tokens, do_sample=False))
    model = model.bfloat16()
    for batch, options in ((1, {"do_sample": False}), (64, {"do_sample": True, "top_k": 50, "top_p": 0.9})):
        tokens = rate(model, batch, arguments.new_tokens, arguments.rounds, **options)
        print(f"transformers bf16, batch {batch}, 64 + {arguments.new_tokens} tokens, {options}: {tokens:.0f} tokens/s")


main()
