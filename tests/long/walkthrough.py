#!/usr/bin/env python3
"""A walk-through of others from end to end: pre-training with Megatron-DeepSpeed's script, its converter, texts by transformers.

    build/oracle/bin/python tests/long/walkthrough.py BLOOMERY

The script is rebase/ds_pretrain_gpt_125M_flashattn.sh as its walk-through changes it: 8 ranks, two each for tensors, the
pipeline and the data, ZeRO 1. Changed here are paths and sizes. Two checkpoints of the run, an early one and the last, become
folders of transformers, from our own files as well as from DeepSpeed's; GPT2LMHeadModel loads them with the same logits as ours,
writes three samples by the walk-through's settings, and finds its text likelier at the later checkpoint."""
import json
import lzma
import pathlib
import sys
import tempfile

import numpy
import torch
from transformers import GPT2LMHeadModel, GPT2Tokenizer, set_seed
from transformers.utils import logging

from training import ROOT, SHARED_DATA, Program, flags, steps

SCRIPT = "rebase/ds_pretrain_gpt_125M_flashattn.sh"
RANKS, EARLY, LAST, LENGTH = 8, 5, 40, 64
PROMPT = "I like to play golf. Today is a sunny day and I plan to"
SIZES = {"--num-layers": 4, "--hidden-size": 64, "--num-attention-heads": 4, "--seq-length": LENGTH, "--max-position-embeddings": LENGTH,
         "--global-batch-size": 8, "--train-samples": 8 * LAST, "--train-tokens": 8 * LAST * LENGTH, "--lr-warmup-tokens": 8 * 6 * LENGTH,
         "--lr-decay-tokens": 8 * LAST * LENGTH, "--lr": "6e-3", "--save-interval": EARLY, "--eval-interval": LAST, "--eval-iters": 1}


def command(folder, gpt2):
    script = next(s for s in json.loads((ROOT / "tests/golden/megatron_scripts.json").read_text()) if s["name"] == SCRIPT)
    config = {**script["deepspeed"], "train_batch_size": SIZES["--global-batch-size"]}
    (folder / "ds_config.json").write_text(json.dumps(config))
    changes = {**SIZES, "--load": folder / "save", "--save": folder / "save", "--tensorboard-dir": folder / "tensorboard",
               "--deepspeed_config": folder / "ds_config.json", "--data-path": folder / "my-gpt2_text_document",
               "--vocab-file": gpt2 / "gpt2-vocab.json", "--merge-file": gpt2 / "gpt2-merges.txt"}
    words = list(script["arguments"])
    for flag, value in changes.items():
        words[words.index(flag) + 1] = value
    return words + ["--no-gradient-accumulation-fusion"]


def converted(program, source, folder):
    program("deepspeed_to_transformers", "--input_folder", source, "--output_folder", folder)
    model, report = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    return model.float().eval()


def expect_same_logits(program, folder, checkpoint, model):
    tokens = numpy.random.default_rng(3).integers(0, model.config.vocab_size, (2, LENGTH))
    (folder / "ids.json").write_text(json.dumps(tokens.tolist()))
    program("evaluate", *flags(task="LOGITS", load=checkpoint, ids=folder / "ids.json", output=folder / "logits.npy", dtype="fp32"))
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)).logits.numpy()
    error = abs(numpy.load(folder / "logits.npy") - expected).max() / abs(expected).max()
    assert error < 2e-5, f"logits differ by {error}"
    return error


def samples(model, tokenizer):
    inputs = tokenizer(PROMPT, return_tensors="pt")
    set_seed(1)
    made = model.generate(**inputs, max_new_tokens=40, do_sample=True, top_k=50, top_p=0.95, num_return_sequences=3, pad_token_id=tokenizer.eos_token_id)
    texts = [tokenizer.decode(text, skip_special_tokens=True) for text in made]
    assert len(texts) == 3 and all(text.startswith(PROMPT) and len(text) > len(PROMPT) for text in texts), texts
    return texts


def loss(model, tokenizer, text):
    tokens = torch.tensor([tokenizer(text)["input_ids"][:LENGTH * 8]]).view(8, LENGTH)
    with torch.no_grad():
        return model(tokens, labels=tokens).loss.item()


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    program, gpt2 = Program(sys.argv[1]), SHARED_DATA / "tokenizers/gpt2"
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        text = lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()).decode()
        (folder / "oscar.jsonl").write_text(text)
        program("preprocess_data", *flags(input=folder / "oscar.jsonl", output_prefix=folder / "my-gpt2", vocab_file=gpt2 / "gpt2-vocab.json", dataset_impl="mmap",
                                          tokenizer_type="GPT2BPETokenizer", merge_file=gpt2 / "gpt2-merges.txt", append_eod=True, workers=8))
        program("pretrain_gpt", *program.device, *command(folder, gpt2), "--ranks-as-threads", RANKS, timeout=1800)
        assert {EARLY, LAST} <= set(steps(folder / "save")), steps(folder / "save")
        tokenizer = GPT2Tokenizer(str(gpt2 / "gpt2-vocab.json"), str(gpt2 / "gpt2-merges.txt"))
        losses = []
        for step in (EARLY, LAST):
            checkpoint = folder / f"save/step-{step}"
            model = converted(program, checkpoint, folder / f"HF/step{step}")
            program("convert", *flags(input=checkpoint, output=folder / f"ds{step}", to="deepspeed", tensor=2, pipeline=2))
            again = converted(program, folder / f"ds{step}/global_step{step}", folder / f"HF/global_step{step}")
            for (name, a), (_, b) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
                assert torch.equal(a, b), f"{name} of step {step} by way of DeepSpeed's files"
            error = expect_same_logits(program, folder, checkpoint, model)
            losses.append(loss(model, tokenizer, json.loads(text.splitlines()[0])["text"]))
            print(f"step {step}: logits within {error:.1e}, loss {losses[-1]:.3f}")
            for number, sample in enumerate(samples(model, tokenizer)):
                print(f"{number}: {sample!r}")
        assert losses[1] < losses[0] - 0.5, losses
        ours = program("generate", *flags(load=folder / "save", prompt=PROMPT, out_seq_length=40, top_k=50, top_p=0.95, num_samples=3, seed=1)).out
        assert ours.count(PROMPT) == 3, ours
    print("pre-trained on 8 ranks, converted, and read aloud by transformers")


main()
