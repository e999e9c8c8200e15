#!/usr/bin/env python3
"""Stopped and resumed in a new process, a run gives bit for bit the losses, validations and checkpoints of one that went
through.

    build/oracle/bin/python tests/long/resume.py BLOOMERY [--device cuda] [--only NAME]"""
import argparse
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from training import (ITERATION, Program, expect_equal, expect_same_checkpoint, make_stories, metrics, steps, tiny)

# Name -> options beside those of training.tiny(), which has dropout and accumulation.
CASES = {
    "fp32": {},
    "bf16": dict(bf16=True),
    "fp16, scale in motion": dict(fp16=True, initial_loss_scale=2**22, loss_scale_window=2, train_iters=24),
    "fp16, scale found from 2^32": dict(fp16=True, train_iters=32, hysteresis=1),
    "no dropout": dict(hidden_dropout=0, attention_dropout=0),
    "ramp-up": dict(train_iters=None, train_samples=80, rampup_batch_size=[4, 4, 40], global_batch_size=12),
    "by samples": dict(train_iters=None, train_samples=48),
    "by tokens, schedule of tokens": dict(train_iters=None, train_samples=48, train_tokens=48 * 32, lr_decay_tokens=40 * 32,
                                          lr_warmup_fraction=None, lr_warmup_tokens=10 * 32),
    "growing weight decay": dict(weight_decay_incr_style="cosine", start_weight_decay=0.0, end_weight_decay=0.2),
    "cyclic order": dict(dataloader_type="cyclic"),
    "full recomputation": dict(checkpoint_activations=True),
    "block recomputation, bf16": dict(bf16=True, recompute_granularity="full", recompute_method="block"),
    "Llama's shape": dict(use_rotary_position_embeddings=True, normalization="rmsnorm", swiglu=True,
                          disable_bias_linear=True, untie_embeddings_and_output_weights=True, num_key_value_heads=2),
    "sgd": dict(optimizer="sgd"),
    "two ranks": dict(ranks_as_threads=2),
    "two ranks, bf16, ramp-up": dict(ranks_as_threads=2, bf16=True, train_iters=None, train_samples=80,
                                     rampup_batch_size=[4, 4, 40], global_batch_size=12),
    "synchronous saving": dict(synchronous_save=True),
}
SIGNALS = [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP]


def compare_runs(program, whole, whole_folder, parts, folder):
    lines, evaluations = {}, []
    for part in parts:
        repeated = set(lines) & set(part.iterations())
        assert not repeated, f"iterations {sorted(repeated)} were trained twice"
        lines.update(part.iterations())
        evaluations += part.evaluations()
    expect_equal("iteration lines", sorted(lines.items()), sorted(whole.iterations().items()))
    expect_equal("validations", evaluations, whole.evaluations())
    expect_equal("metrics.jsonl", metrics(folder), metrics(whole_folder))
    common = set(steps(folder)) & set(steps(whole_folder))
    assert max(steps(whole_folder)) in common and len(common) >= 2, f"{steps(folder)} and {steps(whole_folder)}"
    for step in common:
        expect_same_checkpoint(program, folder / f"step-{step}", whole_folder / f"step-{step}")


def stopped_at_interval(program, corpus, folder, options, device):
    """Stops at step 5, between saves and in the middle of an evaluation interval, then at 10, then goes to the end."""
    both = {"save": folder / "whole", "load": folder / "whole"}
    whole = program.pretrain(*tiny(corpus, **both, **options))
    both = {"save": folder / "parts", "load": folder / "parts"}
    parts = [program.pretrain(*tiny(corpus, **both, exit_interval=5, **options), expected=75)]
    assert steps(folder / "parts")[-1] == 5, steps(folder / "parts")
    parts.append(program.pretrain(*tiny(corpus, **both, exit_interval=5, **options), expected=75))
    assert parts[-1].loaded_iteration() == 5 and steps(folder / "parts")[-1] == 10
    parts.append(program.pretrain(*tiny(corpus, **both, **options)))
    assert parts[-1].loaded_iteration() == 10
    compare_runs(program, whole, folder / "whole", parts, folder / "parts")
    return f"{len(whole.iterations())} steps"


def stopped_by_signal(program, corpus, folder, number):
    options = dict(train_iters=400, save_interval=150, eval_interval=60, hidden_size=128, seq_length=32)
    whole = program.pretrain(*tiny(corpus, save=folder / "whole", **options))
    both = {"save": folder / "parts", "load": folder / "parts"}
    process = program.start(*tiny(corpus, **both, **options))
    text = ""
    for line in process.stdout:
        text += line
        if (match := ITERATION.match(line)) and match[1] == "70":
            process.send_signal(number)
    code = process.wait()
    assert code == 75, f"exit code {code} after {number.name}:\n{text[-2000:]}"
    stopped = steps(folder / "parts")[-1]
    assert 70 <= stopped < 400, f"stopped at {stopped}"
    first = type(whole)(code, text, "")
    second = program.pretrain(*tiny(corpus, **both, **options))
    assert second.loaded_iteration() == stopped
    compare_runs(program, whole, folder / "whole", [first, second], folder / "parts")
    return f"stopped at {stopped} of 400"


def stopped_twice(program, corpus, folder):
    """Further signals within the grace period do not spoil the save; one after it leaves at once, without saving."""
    slow = dict(train_iters=20, hidden_size=1024, seq_length=512, max_position_embeddings=512, global_batch_size=64, save_interval=1000)
    for name, pause in ("within", 0.5), ("after", 11):
        if name == "after" and "cuda" in program.device:
            continue  # no step takes that long there
        process = program.start(*tiny(corpus, save=folder / name, **{**slow, "global_batch_size": 16 if name == "within" else 640}))
        for line in process.stdout:
            if line.startswith("training ..."):
                break
        process.send_signal(signal.SIGTERM)
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=5 if name == "after" else 600)
        finally:
            process.kill()
        saved = steps(folder / name)
        if name == "within":
            assert process.returncode == 75 and saved, f"exit code {process.returncode}, {saved}"
        else:
            assert process.returncode == 128 + signal.SIGINT and not saved, f"exit code {process.returncode}, {saved}"
    return "saved within the grace period, left at once after it"


def lengthened(program, corpus, folder):
    """Iterations remain after a finished run when --train-iters grows; a finished run has nothing left to do."""
    constant = dict(lr_decay_style="constant", lr_warmup_fraction=None, override_opt_param_scheduler=True)
    both = {"save": folder / "parts", "load": folder / "parts"}
    first = program.pretrain(*tiny(corpus, **both, **constant, train_iters=8))
    again = program.pretrain(*tiny(corpus, **both, **constant, train_iters=8))
    assert again.iterations() == {} and again.loaded_iteration() == 8
    # Whether samples repeat depends on the number asked for, so the longer run has its own order: weights alone are checked.
    second = program.pretrain(*tiny(corpus, **both, **constant, train_iters=12))
    assert sorted(second.iterations()) == [9, 10, 11, 12] and len(first.iterations()) == 8
    return "8 and 4 steps"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    program = Program(a.program, a.device)
    tests = {name: lambda *args, options=options: stopped_at_interval(*args, options, a.device)
             for name, options in CASES.items()}
    tests |= {number.name: lambda *args, number=number: stopped_by_signal(*args, number) for number in SIGNALS}
    tests |= {"two signals": stopped_twice, "lengthened": lengthened}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_stories(program, folder)
        for name, test in tests.items():
            if a.only not in name:
                continue
            place = pathlib.Path(folder) / "case"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            try:
                print(f"{name}: {test(program, corpus, place)}", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{name}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
