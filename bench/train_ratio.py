#!/usr/bin/env python3
"""Tokens per second of `bloomery bench train` beside PyTorch's, taking turns, on machines whose speed changes by the minute.

The program and the PyTorch processes of all models wait, warm, and every round asks each for one measurement of a few steps, so
that all of them see the machine in the same state. Where memory is too small for that (--apart) each starts anew for its turn,
alone. Prints every round, and for each model the medians, the peak memory and the ratio to the better PyTorch, the one with the
higher median: its median over the rounds, and the ratio of all turns together. With --floor or --ceilings the program, alone by
then, also says what its step could take at least.
Usage: train_ratio.py [--program build/cpu/bloomery] [--rounds 3] [--threads 2] [--modes eager] [--device cpu] [--apart]
                      [--python python3] [--floor] [--ceilings] [--program-flags "--recompute-activations"]
                      [--micro-batch-size N] [--seq-length N] [--gradient-accumulation-steps N] [--num-experts N [--topk N]]
                      SIZE:DTYPE:STEPS... (as 10M:bf16:4 124M:fp32:1)"""
import argparse
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys

PEER = pathlib.Path(__file__).resolve().parent / "peers" / "train_torch.py"
SHARED = ("micro_batch_size", "seq_length", "gradient_accumulation_steps", "num_experts", "topk")  # flags of both sides


def fail(message):
    print(f"train_ratio.py: {message}", file=sys.stderr)
    sys.exit(2)


class Measurement:
    def __init__(self, line):
        rate, work = re.search(r"(\d+) tokens/s", line), re.search(r"(\d+) parameters, ([\dx ]+) tokens:", line)
        if not rate or not work:
            fail(f"no tokens/s, parameters and batch in: {line!r}")
        self.rate = int(rate.group(1))
        self.work = work.groups()  # parameters and batch: what must be the same on both sides
        memory = re.search(r"peak ([\d.]+) GiB", line)
        self.memory = float(memory.group(1)) if memory else None


class Runner:
    """A process that says "ready" and then measures once for every line it receives."""

    def __init__(self, command, name):
        self.command, self.name, self.process = command, name, None

    def start(self, flags=()):
        self.process = subprocess.Popen([*self.command, *flags], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait_until_ready(self):
        if self.process.stdout.readline().strip() != "ready":
            hint = "" if self.name == "bloomery" else " (is PyTorch there? --python names another Python)"
            fail(f"{self.name} did not start{hint}; if memory is short, --apart lets them run one at a time: "
                 f"{shlex.join(self.process.args)}")

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return Measurement(self.process.stdout.readline())

    def finish(self):
        """Ends the process; returns what else it has to say."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        if self.process.wait() != 0:
            fail(f"{self.name} failed: {shlex.join(self.process.args)}")
        return rest


class Model:
    """One SIZE:DTYPE:STEPS and its processes: the program first."""

    def __init__(self, text, o):
        fields = text.split(":")
        if len(fields) != 3 or fields[1] not in ("fp32", "bf16") or not fields[2].isdigit() or int(fields[2]) < 1:
            fail(f"{text!r} is not SIZE:DTYPE:STEPS: a size of bench train, fp32 or bf16, and a number, as 124M:bf16:2")
        self.name = f"{fields[0]} {fields[1]}"
        flags = ["--size", fields[0], "--dtype", fields[1], "--device", o.device, "--steps", fields[2], "--on-request"]
        for option in SHARED:
            if getattr(o, option) is not None:
                flags += ["--" + option.replace("_", "-"), str(getattr(o, option))]
        self.program = Runner([o.program, "bench", "train", *flags, "--num-threads", str(o.threads), *shlex.split(o.program_flags)],
                              "bloomery")
        peer = [o.python, str(PEER), *flags, "--threads", str(o.threads)]
        self.peers = [Runner(peer + (["--compile"] if mode == "compiled" else []), mode) for mode in o.modes]
        self.reports = [flag for flag, wanted in (("--floor", o.floor), ("--ceilings", o.ceilings)) if wanted]
        self.rounds = []

    def runners(self):
        return [self.program, *self.peers]

    def measure(self, number):
        measured = {runner.name: runner.measure() for runner in self.runners()}
        self.note(number, measured)

    def measure_apart(self, number, is_last):
        measured, rest = {}, ""
        for runner in self.runners():
            runner.start(self.reports if is_last and runner is self.program else ())
            runner.wait_until_ready()
            measured[runner.name] = runner.measure()
            rest += runner.finish()
        self.note(number, measured)
        print(rest, end="", flush=True)

    def note(self, number, measured):
        if len({one.work for one in measured.values()}) != 1:
            fail(f"{self.name}: not the same work: " + ", ".join(f"{name} {one.work}" for name, one in measured.items()))
        self.rounds.append(measured)
        rates = ", ".join(f"{name} {one.rate}" for name, one in measured.items())
        print(f"round {number + 1}, {self.name}: {rates}", flush=True)

    def summary(self):
        rates = {name: [row[name].rate for row in self.rounds] for name in self.rounds[0]}
        medians = {name: statistics.median(values) for name, values in rates.items()}
        better = max((peer.name for peer in self.peers), key=medians.get)
        ratios = sorted(ours / theirs for ours, theirs in zip(rates["bloomery"], rates[better]))
        whole = sum(1 / rate for rate in rates[better]) / sum(1 / rate for rate in rates["bloomery"])
        memory = ", ".join(f"{name} {one.memory:.2f}" for name, one in self.rounds[-1].items() if one.memory is not None)
        return (f"{self.name} medians: " + ", ".join(f"{name} {value:.0f}" for name, value in medians.items()) +
                f"; ratio to {better} {statistics.median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}, "
                f"of all turns {whole:.2f}; peak GiB: {memory}")


def take_turns(models, o):
    """The program starts last: what it times to choose its methods must not be disturbed by PyTorch's compiler."""
    peers = [peer for model in models for peer in model.peers]
    for peer in peers:
        peer.start()
    for peer in peers:  # compiled PyTorch takes two minutes
        peer.wait_until_ready()
    for model in models:
        model.program.start(model.reports)
        model.program.wait_until_ready()
    for number in range(o.rounds):
        for model in models:
            model.measure(number)
    for peer in peers:
        peer.finish()
    for model in models:
        print(model.program.finish(), end="", flush=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="SIZE:DTYPE:STEPS")
    parser.add_argument("--program", default="build/cpu/bloomery")
    parser.add_argument("--program-flags", default="", metavar="FLAGS", help="further options of bench train")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", default="eager,compiled", type=lambda text: text.split(","))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--apart", action="store_true", help="one process at a time, started anew for each turn")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--ceilings", action="store_true")
    for option in SHARED:
        parser.add_argument("--" + option.replace("_", "-"), type=int)
    return parser.parse_args()


def main():
    o = options()
    models = [Model(text, o) for text in o.models]
    if shutil.which(o.program) is None:
        fail(f"no program at {o.program}: build it (make PRESET=cpu) or give --program")
    if shutil.which(o.python) is None:
        fail(f"no Python at {o.python}: give one that has PyTorch with --python")
    if o.rounds < 1 or not set(o.modes) <= {"eager", "compiled"}:
        fail("--rounds is at least 1, and --modes are eager, compiled, or both with a comma")
    if o.apart:
        for number in range(o.rounds):
            for model in models:
                model.measure_apart(number, number + 1 == o.rounds)
    else:
        take_turns(models, o)
    for model in models:
        print(model.summary())


if __name__ == "__main__":
    main()
