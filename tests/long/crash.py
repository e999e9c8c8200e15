#!/usr/bin/env python3
"""Runs that are killed, checkpoints that are damaged, disks that are full.

    build/oracle/bin/python tests/long/crash.py BLOOMERY [--kills 50] [--damages 200] [--device cuda] [--only kills|damage|space]

The last part mounts a small tmpfs and needs root; without it, it says so and is left out."""
import argparse
import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from training import (ITERATION, Program, Run, expect_equal, expect_same_checkpoint, expect_whole_run, leftovers, make_stories, steps,
                      tiny, wait_for)


MOMENTS = ["training", "saving", "pruning", "start", "pruning", "saving"]


def killed_run(program, command, folder, log, moment, generator):
    """Killed at start, or in the middle of training, of a save or of a deletion. Whether it was, and what it had printed."""
    left = leftovers(folder)
    with open(log, "w+") as output:
        process = program.start(*command, output=output)
        time.sleep(generator.uniform(0, 0.15))
        if moment != "start":
            wait_for(process, folder, moment, generator.uniform(0, 0.3 if moment == "training" else 0.004), left)
        process.kill()
        code = process.wait()
        output.seek(0)
        run = Run(code, output.read(), "")
    assert code in (0, -9), f"exit code {code}\n{run.out[-2000:]}"
    return code == -9, run


def kills(program, corpus, folder, count, generator):
    """Whatever the moment, the next process goes on from the newest committed step, and the last one ends with the weights
    and metrics of a run that nobody killed."""
    options = dict(train_iters=300, save_interval=3, keep_last=2, keep_every=100, eval_interval=50)
    whole, save = folder / "whole run", folder / "killed"
    program.pretrain(*tiny(corpus, save=whole, **options))
    command = tiny(corpus, save=save, load=save, **options)
    moments, ended = [], 0
    while len(moments) < count or ended == 0:
        newest = steps(save)[-1:]
        if len(moments) < count:
            more = ["--synchronous-save"] if generator.random() < 0.3 else []
            moment = MOMENTS[len(moments) % len(MOMENTS)]
            killed, run = killed_run(program, command + more, save, folder / "log", moment, generator)
        else:
            killed, run = False, program.pretrain(*command)
        if run.loaded_iteration() is not None or run.iterations() or not killed:
            expect_equal("resumed from", [run.loaded_iteration()] if newest else [], newest)
        if steps(save):
            program("checkpoint", "verify", save)
            assert steps(save)[-1:] >= newest, f"the newest step went back from {newest} to {steps(save)}"
        if killed:
            moments.append(moment)
        else:
            ended += 1
            expect_whole_run(program, save, whole)
            shutil.rmtree(save)
    return f"{count} kills ({', '.join(f'{moments.count(m)} {m}' for m in sorted(set(moments)))}), {ended} runs to the end"


def damage(path, generator):
    """One change to a file that no reader may miss; returns what was done."""
    size = path.stat().st_size
    kind = generator.choice(["flip", "flip", "flip", "truncate", "truncate", "zeros", "longer", "gone"])
    if kind == "gone":
        path.unlink()
        return "removed"
    with open(path, "r+b") as file:
        at = generator.randrange(size)
        if kind == "flip":
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << generator.randrange(8)]))
        elif kind == "truncate":
            file.truncate(at)
        elif kind == "longer":
            file.seek(0, 2)
            file.write(bytes(generator.randrange(1, 5000)))
        else:
            file.seek(at)
            old = file.read(64)
            if not old.strip(b"\0"):
                return damage(path, generator)
            file.seek(at)
            file.write(bytes(len(old)))
    return f"{kind} at {at} of {size}"


def damages(program, corpus, folder, count, generator):
    """`checkpoint verify` finds each; resuming takes the newest that is whole, and refuses when none is."""
    good, copy = folder / "good", folder / "copy"
    program.pretrain(*tiny(corpus, save=good, train_iters=12, save_interval=4, hidden_size=32, num_layers=1))
    assert steps(good) == [4, 8, 12]
    resumed = refused = 0
    for k in range(count):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(good, copy)
        # Every tenth time something is wrong with each checkpoint.
        victims = [4, 8, 12] if k % 10 == 9 else generator.sample([4, 8, 12], generator.choice([1, 1, 2]))
        done = {}
        for step in victims:
            path = generator.choice(sorted((copy / f"step-{step}").iterdir()))
            done[f"step-{step}/{path.name}"] = damage(path, generator)
        run = program("checkpoint", "verify", copy, expected=2)
        for name in done:
            assert name.split("/")[0] in run.text, f"{done} but verify says\n{run.text}"
        if k % 4 and k % 10 != 9:
            continue
        left = [step for step in [4, 8, 12] if step not in victims]
        run = program.pretrain(*tiny(corpus, save=copy, load=copy, train_iters=12, hidden_size=32, num_layers=1),
                               expected=0 if left else 2)
        if left:
            resumed += 1
            expect_equal(f"resumed from, with {done}", run.loaded_iteration(), left[-1])
            assert all(f"step-{s}" in run.text for s in victims if s > left[-1]), f"{done}, but nothing is said:\n{run.text}"
            if left[-1] < 12:
                expect_same_checkpoint(program, copy / "step-12", good / "step-12")
        else:
            refused += 1
            assert not run.iterations(), "training started from scratch"
    return f"{count} damages found, {resumed} runs resumed from the last good one, {refused} refused"


class SmallDisk:
    """A tmpfs of so many bytes."""

    def __init__(self, path, size):
        self.path = path
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)


def names_needed_and_free(text):
    found = [line for line in text.splitlines() if re.search(r"\d.*(needed|needs)|need.*\d", line) and "free" in line]
    assert found, f"no line names the bytes needed and free:\n{text[-2500:]}"
    return found


def reference_run(program, corpus, folder):
    """A run with room, and the bytes of a checkpoint of it."""
    whole = folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    run = program.pretrain(*tiny(corpus, save=whole))
    return run, sum(f.stat().st_size for f in (whole / "step-4").iterdir())


def full_disk(program, corpus, folder):
    """Room for one checkpoint: later saves fail, training goes on, and the exit code says that the last one is missing."""
    reference, size = reference_run(program, corpus, folder)
    with SmallDisk(folder / "full", int(size * 1.7) // 4096 * 4096) as disk:
        run = program.pretrain(*tiny(corpus, save=disk, load=disk), expected=1)
        expect_equal("steps beside a full disk", sorted(run.iterations().items()), sorted(reference.iterations().items()))
        expect_equal("checkpoints", steps(disk), [4])
        lines = names_needed_and_free(run.text)
        program("checkpoint", "verify", disk)
        assert not [name for name in os.listdir(disk) if "tmp" in name], os.listdir(disk)
    return lines[0].strip()


def fill(path):
    with open(path, "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(65536))


def disk_without_room(program, corpus, folder):
    """A run that cannot save is refused before it trains, and leaves nothing."""
    with SmallDisk(folder / "none", 256 * 1024) as disk:
        fill(disk / "filler")
        run = program.pretrain(*tiny(corpus, save=disk), expected=2)
        expect_equal("steps without room", run.iterations(), {})
        assert "checkpoints cannot be saved in" in run.text and "no space left" in run.text, run.text[-600:]
        expect_equal("files", sorted(os.listdir(disk)), [".bloomery.lock", "filler"])
    return "refused at its start"


def room_again(program, corpus, folder):
    """The disk fills while the run trains, a save fails, room is made, the last save succeeds: exit code 0."""
    _, size = reference_run(program, corpus, folder)
    with SmallDisk(folder / "later", size * 8) as disk:
        process = program.start(*tiny(corpus, save=disk, train_iters=300, save_interval=50, keep_last=2))
        text, filled = "", False
        for line in process.stdout:
            text += line
            if ITERATION.match(line) and not filled:
                fill(disk / "filler")
                filled = True
            if "cannot save" in line:
                (disk / "filler").unlink(missing_ok=True)
        assert process.wait() == 0, f"exit code {process.returncode}:\n{text[-2500:]}"
        assert "cannot save" in text, text[-2500:]
        assert steps(disk) and steps(disk)[-1] == 300, steps(disk)
    return "the last save counts"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    program, generator = Program(a.program, a.device), random.Random(a.seed)
    tests = {"kills": lambda *args: kills(*args, a.kills, generator),
             "damage": lambda *args: damages(*args, a.damages, generator)}
    if os.geteuid() == 0:
        tests |= {"space: full disk": full_disk, "space: no room at all": disk_without_room, "space: room again": room_again}
    else:
        print("space: left out, because mounting a small disk needs root")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_stories(program, folder)
        for name, test in tests.items():
            if a.only not in name:
                continue
            begin = time.time()
            try:
                print(f"{name}: {test(program, corpus, pathlib.Path(folder))} ({time.time() - begin:.0f} s)", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{name}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
