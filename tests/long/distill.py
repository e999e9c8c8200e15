#!/usr/bin/env python3
"""Distillation beside PyTorch: losses and every gradient of random students and teachers of transformers.

    build/oracle/bin/python tests/long/distill.py BLOOMERY [--cases 6] [--device cuda]

A step of plain SGD with a huge rate leaves the gradient in the weights. The loss mask has zeros (--eod-mask-loss), which
Megatron-DeepSpeed's own divergence overlooks; its tensor-parallel ranks, ours by threads here, take the softmax of a shard."""
import argparse
import json
import pathlib
import tempfile

import torch
import torch.nn.functional as F
import transformers
from training import Program, flags, make_stories

RATE, LENGTH, BATCH = 1e4, 48, 32


def random_model(kind, layers, hidden, vocabulary):
    common = dict(vocab_size=vocabulary, tie_word_embeddings=kind == "gpt2")
    if kind == "gpt2":
        config = transformers.GPT2Config(n_layer=layers, n_embd=hidden, n_head=4, n_positions=64, attn_pdrop=0, resid_pdrop=0,
                                         embd_pdrop=0, **common)
    else:
        config = transformers.LlamaConfig(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=4,
                                          num_key_value_heads=2, intermediate_size=2 * hidden, max_position_embeddings=64, **common)
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def torch_losses(student, teacher, tokens, eod, beta, temperature):
    inputs, labels = tokens[:, :-1], tokens[:, 1:]
    mask = (inputs != eod).float()
    logits = student(input_ids=inputs).logits
    with torch.no_grad():
        taught = teacher(input_ids=inputs).logits
    cross = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(mask)
    divergence = F.kl_div(F.log_softmax(logits / temperature, -1), F.softmax(taught / temperature, -1), reduction="none").sum(-1)
    lm, kd = [(x * mask).sum() / mask.sum() for x in (cross, divergence)]
    return lm, beta * temperature**2 * kd, int((mask == 0).sum())


def case(program, corpus, folder, number):
    torch.manual_seed(number)
    words = json.loads(corpus.vocab_file.read_text())
    vocabulary, eod = len(words), words["<|endoftext|>"]
    kinds = [("gpt2", "llama")[number % 2], ("gpt2", "llama", "gpt2")[number % 3]]
    student = random_model(kinds[0], 2, 32, vocabulary)
    teacher = random_model(kinds[1], 3, (32, 48)[number % 2], vocabulary)
    beta, temperature, tensor = (1, 0.3, 2)[number % 3], (1, 2.5)[number // 2 % 2], 1 + number % 2
    student.save_pretrained(folder / "student")
    teacher.save_pretrained(folder / "teacher")
    run = program.pretrain(*corpus.flags(), *flags(
        load=folder / "student", load_teacher=folder / "teacher", kd=True, kd_beta_ce=beta, kd_temp=temperature, seq_length=LENGTH,
        micro_batch_size=BATCH, train_iters=1, lr=RATE, min_lr=RATE, lr_decay_style="constant", optimizer="sgd", sgd_momentum=0,
        weight_decay=0, clip_grad=0, split="100,0,0", eval_iters=0, log_interval=1, eod_mask_loss=True, save=folder / "save",
        hidden_dropout=0, attention_dropout=0, ranks_as_threads=tensor, tensor_model_parallel_size=tensor))
    program("convert", *flags(input=folder / "save", output=folder / "after", to="hf"))
    samples = program("data", "samples", *flags(data_path=corpus.prefix, split="100,0,0", seq_length=LENGTH, num_samples=BATCH,
                                                count=BATCH, json=True))
    tokens = torch.tensor([json.loads(line)["tokens"] for line in samples.out.splitlines()])
    lm, kd, masked = torch_losses(student, teacher, tokens, eod, beta, temperature)
    assert masked > 0
    (lm + kd).backward()
    line = run.iterations()[1]
    for name, expected in (("lm loss", lm), ("kd loss", kd), ("total loss", lm + kd)):
        assert abs(float(line[name]) / expected.item() - 1) < 2e-6, (name, line, expected)
    after = dict(transformers.AutoModelForCausalLM.from_pretrained(folder / "after").named_parameters())
    worst = 0
    for name, parameter in student.named_parameters():
        gradient = (parameter - after[name]).detach() / RATE
        worst = max(worst, ((gradient - parameter.grad).abs().max() / parameter.grad.abs().max()).item())
    assert worst < 1e-5, worst
    return f"{kinds[0]} of {kinds[1]}, beta {beta}, T {temperature}, {tensor} ranks, {masked} masked: kd loss {kd.item():.5f}, " \
           f"largest difference of a gradient {worst:.2g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    a = parser.parse_args()
    program = Program(a.program, a.device)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_stories(program, folder)
        for number in range(a.cases):
            place = pathlib.Path(folder) / str(number)
            place.mkdir()
            print(f"case {number}: {case(program, corpus, place, number)}", flush=True)


main()
