#!/usr/bin/env python3
"""Tokens per second of `bloomery bench gpt` beside PyTorch's, taking turns, on machines whose speed changes by the minute.

The program and the PyTorch processes wait, warm, and every round asks each for one measurement of a few steps, so that
all of them see the machine in the same state. Prints every round, the medians, and the median over the rounds of the
ratio to the better PyTorch: the one with the higher median.
Usage: gpt_ratio.py --program build/cpu/bloomery --size 10M --dtype bf16 [--rounds 12] [--steps 2] [--threads 2]
                    [--modes eager,compiled] [--device cpu] [--python python3]"""
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
            fail(f"{self.name} did not start (is PyTorch there? --python names another Python): {' '.join(self.process.args)}")

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tokens_per_second(self.process.stdout.readline())


def runners(o):
    flags = ["--size", o.size, "--dtype", o.dtype, "--device", o.device, "--steps", str(o.steps), "--on-request"]
    started = [Runner([o.program, "bench", "gpt", *flags, "--num-threads", str(o.threads)], "bloomery")]
    for mode in o.modes.split(","):
        command = [o.python, str(PEER), *flags, "--threads", str(o.threads)]
        started.append(Runner(command + (["--compile"] if mode == "compiled" else []), mode))
    for runner in started:  # compiled PyTorch takes two minutes
        runner.wait_until_ready()
    return started


def summary(rounds, modes):
    medians = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    better = max(modes, key=medians.get)
    ratios = sorted(row["bloomery"] / row[better] for row in rounds)
    return (", ".join(f"{name} {value:.0f}" for name, value in medians.items()) +
            f"; ratio to {better} {statistics.median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/cpu/bloomery")
    parser.add_argument("--size", default="10M")
    parser.add_argument("--dtype", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--python", default="python3")
    o = parser.parse_args()
    if shutil.which(o.program) is None:
        fail(f"no program at {o.program}: build it (make PRESET=cpu) or give --program")
    if shutil.which(o.python) is None:
        fail(f"no Python at {o.python}: give one that has PyTorch with --python")
    if o.rounds < 1 or not set(o.modes.split(",")) <= {"eager", "compiled"}:
        fail("--rounds is at least 1, and --modes are eager, compiled, or both with a comma")
    processes, rounds = runners(o), []
    for number in range(o.rounds):
        rounds.append({runner.name: runner.measure() for runner in processes})
        print(f"{o.size} {o.dtype} round {number + 1}: " +
              ", ".join(f"{name} {value}" for name, value in rounds[-1].items()), flush=True)
    print(f"{o.size} {o.dtype} medians: {summary(rounds, o.modes.split(','))}")
    for runner in processes:
        runner.process.stdin.close()


if __name__ == "__main__":
    main()
