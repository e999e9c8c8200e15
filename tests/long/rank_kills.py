#!/usr/bin/env python3
"""One of four ranks that are processes is killed, again and again, under several layouts.

    python3 tests/long/rank_kills.py BLOOMERY [--kills 40] [--moments training,saving,start] [--seed 5]

The others leave within 15 s with exit code 1 and the cause; what was committed is whole; the same command goes on from there,
and ends with the bits and the losses of a run that nobody killed."""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from training import Program, Run, expect_equal, expect_whole_run, flags, leftovers, make_stories, steps, tiny, wait_for

RANKS = 4
LAYOUTS = [dict(tensor_model_parallel_size=2, pipeline_model_parallel_size=2), dict(zero_stage=1), dict(zero_stage=3),
           dict(tensor_model_parallel_size=2, zero_stage=2)]
SECONDS_TO_LEAVE = 15
# A rank in a shell that keeps its process and its exit code: pid-0, code-0, ...
KEEPER = """"$@" & echo $! > "$FOLDER/pid-$RANK"; wait $! 2>"$FOLDER/end-$RANK"; code=$?
echo $code > "$FOLDER/code-$RANK"; ((code != 137)) || kill -9 $$; exit $code"""


def start(program, command, folder, log):
    for file in [*folder.glob("pid-*"), *folder.glob("code-*")]:
        file.unlink()
    ranks = ["bash", "-c", KEEPER, "keeper", program.path, "pretrain", *program.device, *command]
    return subprocess.Popen([program.path, "launch", "-n", str(RANKS), *ranks], env={**os.environ, "FOLDER": str(folder)},
                            stdout=log, stderr=subprocess.STDOUT)


def number_in(path):
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else None


def wait_for_iteration(launch, log, delay):
    """Until this run has done a step, so that all ranks have met; files of earlier runs say nothing of that."""
    while launch.poll() is None:
        if " iteration " in log.read_text():
            time.sleep(delay)
            return
        time.sleep(0.002)


def killed_run(program, command, save, folder, moment, generator):
    """Kills one rank at that moment. Returns whether it came to that, and what the run had printed."""
    victim, left = generator.randrange(RANKS), leftovers(save)
    with open(folder / "log", "w+") as log:
        launch = start(program, command, folder, log)
        if moment == "start":
            time.sleep(generator.choice([generator.uniform(0, 0.02), generator.uniform(0, 0.4)]))
        elif moment == "training":
            wait_for_iteration(launch, folder / "log", generator.uniform(0, 0.3))
        else:
            wait_for(launch, save, moment, generator.uniform(0, 0.004), left)
        while (process := number_in(folder / f"pid-{victim}")) is None:
            time.sleep(0.001)
        killed = number_in(folder / f"code-{victim}") is None
        subprocess.run(["kill", "-9", str(process)], stderr=subprocess.DEVNULL)
        begin = time.time()
        code = launch.wait(timeout=120)
        seconds = time.time() - begin
        log.seek(0)
        run = Run(code, log.read(), "")
    if code == 0:
        return False, run
    codes = [number_in(folder / f"code-{rank}") for rank in range(RANKS)]
    assert killed and codes.pop(victim) == 137, f"exit codes {codes}\n{run.out[-2000:]}"
    cause = f"rank {victim} failed: its process ended" in run.out or f"rank {victim} was ended by signal 9" in run.out
    assert cause, f"nothing says that rank {victim} died:\n{run.out[-2000:]}"
    assert seconds < SECONDS_TO_LEAVE, f"the others took {seconds:.1f} s to leave\n{run.out[-2000:]}"
    # The launch ends those that wait for one which has never come to them.
    ends = [1, None] if moment == "start" else [1]
    assert all(code in ends for code in codes), f"exit codes {codes} after the death of rank {victim} ({moment})\n{run.out[-2000:]}"
    return True, run


def expect_good_folder(program, save, newest):
    """All that is listed is whole, and the newest step did not go back."""
    if not steps(save):
        return
    program("checkpoint", "verify", save)
    listed = [int(step) for step in re.findall(r"step-(\d+)(?!\.tmp)", program("checkpoint", "list", save).out)]
    assert set(listed) <= set(steps(save)), f"{listed} are listed, {steps(save)} are there"
    assert steps(save)[-1:] >= newest, f"the newest step went back from {newest} to {steps(save)}"


def kills(program, corpus, folder, layout, count, moments, generator):
    options = dict(train_iters=60, save_interval=3, keep_last=2, keep_every=30, eval_interval=25, micro_batch_size=1,
                   global_batch_size=4, **layout)
    whole, save = folder / "whole run", folder / "killed"
    program("launch", "-n", RANKS, "pretrain", *program.device, *tiny(corpus, save=whole, **options))
    command = tiny(corpus, save=save, load=save, **options)
    done = ended = 0
    while done < count or ended == 0:
        newest = steps(save)[-1:]
        killed = False
        if done < count:
            killed, run = killed_run(program, command, save, folder, moments[done % len(moments)], generator)
        else:
            run = program("launch", "-n", RANKS, "pretrain", *program.device, *command)
        if run.loaded_iteration() is not None or run.iterations() or not killed:
            expect_equal("resumed from", [run.loaded_iteration()] if newest else [], newest)
        expect_good_folder(program, save, newest)
        if killed:
            done += 1
        else:
            ended += 1
            expect_whole_run(program, save, whole)
            shutil.rmtree(save)
    return f"{count} kills, {ended} runs to the end"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--moments", default="training,saving,start")
    parser.add_argument("--seed", type=int, default=5)
    a = parser.parse_args()
    program, generator = Program(a.program, threads=1), random.Random(a.seed)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_stories(program, folder, count=300, vocabulary=300)
        for i, layout in enumerate(LAYOUTS):
            begin, place = time.time(), pathlib.Path(folder) / str(i)
            place.mkdir()
            count = (a.kills + i) // len(LAYOUTS)
            try:
                what = kills(program, corpus, place, layout, count, a.moments.split(","), generator)
                print(f"{' '.join(flags(**layout))}: {what} ({time.time() - begin:.0f} s)", flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failures += 1
                print(f"{' '.join(flags(**layout))}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
