#!/usr/bin/env python3
"""Tokens per second of `bloomery bench gpt` beside PyTorch's, taking turns, on machines whose speed changes by the minute.

The program and the PyTorch processes of all models wait, warm, and every round asks each for one measurement of a few
steps, so that all of them see the machine in the same state. Prints every round, and for each model the medians and the
ratio to the better PyTorch, the one with the higher median: its median over the rounds, and the ratio of all turns together.
Usage: gpt_ratio.py [--program build/cpu/bloomery] [--rounds 12] [--threads 2] [--modes eager] [--device cpu]
                    [--python python3] SIZE:DTYPE:STEPS... (as 10M:bf16:4 124M:fp32:1)"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

PEER = pathlib.Path(__file__).resolve().parent / "peers" / "gpt_torch.py"


def fail(message):
    print(f"gpt_ratio.py: {message}", file=sys.stderr)
    sys.exit(2)


def tokens_per_second(line):
    found = re.search(r"(\d+) tokens/s", line)
    if not found:
        fail(f"no tokens/s in: {line!r}")
    return int(found.group(1))


class Runner:
    """A process that says "ready" and then measures once for every line it receives."""

    def __init__(self, command, name):
        self.name = name
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_until_ready(self):
        if self.process.stdout.readline().strip() != "ready":
            hint = "" if self.name == "bloomery" else " (is PyTorch there? --python names another Python)"
            fail(f"{self.name} did not start{hint}: {' '.join(self.process.args)}")

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tokens_per_second(self.process.stdout.readline())


class Model:
    """One SIZE:DTYPE:STEPS and its processes."""

    def __init__(self, text):
        fields = text.split(":")
        if len(fields) != 3 or fields[1] not in ("fp32", "bf16") or not fields[2].isdigit() or int(fields[2]) < 1:
            fail(f"{text!r} is not SIZE:DTYPE:STEPS: a size of bench gpt, fp32 or bf16, and a number, as 124M:bf16:2")
        self.size, self.dtype, self.steps = fields
        self.runners, self.rounds = [], []

    def flags(self, o):
        return ["--size", self.size, "--dtype", self.dtype, "--device", o.device, "--steps", self.steps, "--on-request"]

    def start_peers(self, o):
        for mode in o.modes:
            command = [o.python, str(PEER), *self.flags(o), "--threads", str(o.threads)]
            self.runners.append(Runner(command + (["--compile"] if mode == "compiled" else []), mode))

    def start_program(self, o):
        command = [o.program, "bench", "gpt", *self.flags(o), "--num-threads", str(o.threads)]
        self.runners.insert(0, Runner(command, "bloomery"))

    def measure(self):
        self.rounds.append({runner.name: runner.measure() for runner in self.runners})
        return f"{self.size} {self.dtype}: " + ", ".join(f"{name} {value}" for name, value in self.rounds[-1].items())

    def summary(self, modes):
        medians = {name: statistics.median(row[name] for row in self.rounds) for name in self.rounds[0]}
        better = max(modes, key=medians.get)
        ratios = sorted(row["bloomery"] / row[better] for row in self.rounds)
        whole = sum(1 / row[better] for row in self.rounds) / sum(1 / row["bloomery"] for row in self.rounds)
        return (f"{self.size} {self.dtype} medians: " + ", ".join(f"{name} {value:.0f}" for name, value in medians.items()) +
                f"; ratio to {better} {statistics.median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}, "
                f"of all turns {whole:.2f}")


def start(models, o):
    """The program starts last: what it times to choose its methods must not be disturbed by PyTorch's compiler."""
    for model in models:
        model.start_peers(o)
    for model in models:  # compiled PyTorch takes two minutes
        for runner in model.runners:
            runner.wait_until_ready()
    for model in models:
        model.start_program(o)
        model.runners[0].wait_until_ready()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="SIZE:DTYPE:STEPS")
    parser.add_argument("--program", default="build/cpu/bloomery")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--modes", default="eager,compiled", type=lambda text: text.split(","))
    parser.add_argument("--python", default="python3")
    o = parser.parse_args()
    models = [Model(text) for text in o.models]
    if shutil.which(o.program) is None:
        fail(f"no program at {o.program}: build it (make PRESET=cpu) or give --program")
    if shutil.which(o.python) is None:
        fail(f"no Python at {o.python}: give one that has PyTorch with --python")
    if o.rounds < 1 or not set(o.modes) <= {"eager", "compiled"}:
        fail("--rounds is at least 1, and --modes are eager, compiled, or both with a comma")
    start(models, o)
    for number in range(o.rounds):
        for model in models:
            print(f"round {number + 1}, {model.measure()}", flush=True)
    for model in models:
        print(model.summary(o.modes))
        for runner in model.runners:
            runner.process.stdin.close()


if __name__ == "__main__":
    main()
