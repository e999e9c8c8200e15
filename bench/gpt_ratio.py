#!/usr/bin/env python3
"""Tokens per second of `bloomery bench gpt` beside PyTorch's, taking turns, on machines whose speed changes by the minute.

Every round runs the program once and asks each PyTorch process (which wait, warm, in between) for one measurement. Prints
every round, the medians, and the median over the rounds of the ratio to the better PyTorch.
Usage: gpt_ratio.py --program build/cpu/bloomery --size 10M --dtype bf16 [--rounds 5] [--steps 5] [--threads 2]
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


class Peer:
    def __init__(self, o, mode):
        self.mode, self.python = mode, o.python
        command = [o.python, str(PEER), "--size", o.size, "--dtype", o.dtype, "--device", o.device, "--threads",
                   str(o.threads), "--steps", str(o.steps), "--on-request"]
        self.process = subprocess.Popen(command + (["--compile"] if mode == "compiled" else []), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_until_ready(self):
        if self.process.stdout.readline().strip() != "ready":
            fail(f"{self.mode} PyTorch did not start; does {self.python} have it (--python)?")

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return tokens_per_second(self.process.stdout.readline())


def measure_program(o):
    command = [o.program, "bench", "gpt", "--size", o.size, "--dtype", o.dtype, "--device", o.device, "--num-threads",
               str(o.threads), "--steps", str(o.steps)]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        fail(done.stderr.strip())
    return tokens_per_second(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/cpu/bloomery")
    parser.add_argument("--size", default="10M")
    parser.add_argument("--dtype", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--python", default="python3")
    o = parser.parse_args()
    if shutil.which(o.program) is None:
        fail(f"no program at {o.program}: build it (make PRESET=cpu) or give --program")
    if shutil.which(o.python) is None:
        fail(f"no Python at {o.python}: give one that has PyTorch with --python")
    if o.rounds < 1 or not set(o.modes.split(",")) <= {"eager", "compiled"}:
        fail("--rounds is at least 1, and --modes are eager, compiled, or both with a comma")
    peers = {mode: Peer(o, mode) for mode in o.modes.split(",")}
    for peer in peers.values():  # compiled PyTorch takes two minutes to start
        peer.wait_until_ready()
    rounds = []
    for number in range(o.rounds):
        row = {"bloomery": measure_program(o), **{mode: peer.measure() for mode, peer in peers.items()}}
        row["ratio"] = row["bloomery"] / max(row[mode] for mode in peers)
        rounds.append(row)
        print(f"{o.size} {o.dtype} round {number + 1}: " + ", ".join(
            f"{name} {value:.2f}" if name == "ratio" else f"{name} {value}" for name, value in row.items()), flush=True)
    print(f"{o.size} {o.dtype} medians: " + ", ".join(
        f"{name} {statistics.median(row[name] for row in rounds):.{2 if name == 'ratio' else 0}f}" for name in rounds[0]))


if __name__ == "__main__":
    main()
