#!/usr/bin/env python3
"""Jobs on a real Slurm: four nodes on this machine, started and ended by the test.

    python3 -B tests/long/slurm.py BLOOMERY [--only NAME]

What `bloomery launch --to slurm --submit` writes trains 4 ranks on 2 and on 4 nodes. It is told to stop, meets its time limit,
is preempted, loses a node; each time it runs again, and ends with the bits and the losses of a run that went through. The files
of deploy/slurm run as they stand, made small by their variables."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

from slurm_cluster import Cluster, missing_programs, tail
from training import ROOT, SHARED_DATA, Program, expect_equal, expect_same_checkpoint, expect_whole_run, flags, make_stories, metrics, steps, tiny

RANKS = 4
ITERATIONS = 2000
SKIPPED = 77


class Jobs:
    def __init__(self, program, cluster, corpus, folder):
        self.program, self.cluster, self.corpus, self.folder = program, cluster, corpus, folder
        self.runs = 0

    def training(self, save, **changes):
        options = dict(num_layers=1, hidden_size=32, train_iters=ITERATIONS, save_interval=100, eval_interval=500, keep_last=3,
                       global_batch_size=8, zero_stage=1, save=save, load=save)
        return ["pretrain", "--device", "cpu", "--num-threads", 1, *tiny(self.corpus, **{**options, **changes})]

    def undisturbed(self, name="whole", **changes):
        """The folder of a run that went through, on this machine without Slurm."""
        save = self.folder / name
        if not save.exists():
            self.program("launch", "-n", RANKS, *self.training(save, **changes))
        return save

    def submit(self, nodes, *options, **changes):
        """A job's number, the folder of its checkpoints and its log."""
        self.runs += 1
        save = self.folder / f"run{self.runs}"
        words = ["launch", "--to", "slurm", *flags(nodes=nodes, gpus_per_node=0, ranks_per_node=RANKS // nodes, submit=True,
                                                   job_name=f"job{self.runs}"), *options, *self.training(save, **changes)]
        said = self.cluster.run(self.program.path, *words, cwd=self.folder)
        number = said.split()[-1]
        return number, save, self.folder / f"job{self.runs}-{number}.log"

    def wait_for_step(self, job, save, log, step=200):
        def reached():
            state = self.cluster.job(job)["JobState"]
            assert state in ("PENDING", "CONFIGURING", "RUNNING"), f"job {job} is {state}:\n{tail(log)}"
            return max(steps(save), default=0) >= step
        self.cluster.wait(reached, f"step {step} of {save}")

    def expect_resumed(self, job, save, log, whole=None):
        restarts = self.cluster.finish(job, log)
        assert restarts >= 1, f"job {job} never ran again:\n{tail(log)}"
        assert "successfully loaded checkpoint" in log.read_text(), tail(log)
        expect_same_end(self.program, save, whole or self.undisturbed())
        return restarts


def expect_same_end(program, save, whole):
    """The losses of every step and the last checkpoint. Which older ones are kept depends on where a run stopped."""
    newest = max(steps(whole))
    expect_same_checkpoint(program, save / f"step-{newest}", whole / f"step-{newest}")
    expect_equal("metrics.jsonl", metrics(save), metrics(whole))


def two_and_four_nodes(jobs):
    for nodes in 2, 4:
        job, save, log = jobs.submit(nodes)
        restarts = jobs.cluster.finish(job, log)
        assert restarts == 0, tail(log)
        assert f"this is rank 0 of {RANKS}, as srun says" in log.read_text(), tail(log)
        expect_whole_run(jobs.program, save, jobs.undisturbed())


def told_to_stop(jobs):
    for signal in "TERM", "USR1":
        job, save, log = jobs.submit(4)
        jobs.wait_for_step(job, save, log)
        jobs.cluster.run("scancel", f"--signal={signal}", job)
        jobs.expect_resumed(job, save, log)


def process_per_node(jobs):
    """Each node's process starts its ranks, and passes on that they must stop."""
    job, save, log = jobs.submit(2, "--process-per", "node")
    jobs.wait_for_step(job, save, log)
    jobs.cluster.run("scancel", "--signal=TERM", job)
    jobs.expect_resumed(job, save, log)


def time_limit(jobs):
    # Slurm looks every 30 s, and sends the signal up to 60 s early.
    longer = dict(train_iters=6 * ITERATIONS, save_interval=1000)
    job, save, log = jobs.submit(2, "--time", "1", "--grace-seconds", 29, **longer)
    whole = jobs.undisturbed("longer", **longer)
    restarts = jobs.expect_resumed(job, save, log, whole)
    print(f"  stopped before the limit {restarts} times")


def preemption(jobs):
    job, save, log = jobs.submit(4)
    jobs.wait_for_step(job, save, log)
    other = jobs.cluster.run("sbatch", "--partition=high", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=true",
                             cwd=jobs.folder).split()[-1]
    jobs.expect_resumed(job, save, log)
    jobs.cluster.finish(other, log)


def killed_node(jobs):
    job, save, log = jobs.submit(2)
    jobs.wait_for_step(job, save, log)
    killed = jobs.cluster.kill_node("n2")
    assert killed >= 2, f"{killed} processes were on the node"
    jobs.expect_resumed(job, save, log)
    jobs.cluster.start_node("n2")


def cancelled(jobs):
    """Who cancels a job does not want it to run again."""
    job, save, log = jobs.submit(2)
    jobs.wait_for_step(job, save, log)
    jobs.cluster.run("scancel", job)
    jobs.cluster.wait(lambda: jobs.cluster.job(job)["JobState"] == "CANCELLED", "cancelled job")
    assert jobs.cluster.job(job)["Restarts"] == "0", tail(log)


def plain_srun(jobs):
    save = jobs.folder / "plain"
    jobs.cluster.run("srun", "--nodes=2", "--ntasks-per-node=2", jobs.program.path, *jobs.training(save), cwd=jobs.folder)
    expect_whole_run(jobs.program, save, jobs.undisturbed())


def logs_and_staging(jobs):
    logs, local = jobs.folder / "logs", jobs.folder / "local"
    job, save, log = jobs.submit(2, "--output-folder", logs, "--stage", jobs.corpus.prefix, "--stage-folder", local,
                                 train_iters=20)
    jobs.cluster.finish(job, log)
    assert {path.name for path in logs.iterdir()} == {f"rank-{rank}.log" for rank in range(RANKS)}, list(logs.iterdir())
    assert "iteration       20" in (logs / "rank-0.log").read_text()
    assert local.is_dir() and not list(local.iterdir()), "the copies are still there"
    expect_equal("metrics.jsonl", metrics(save)[:2], metrics(jobs.undisturbed("short", train_iters=20))[:2])


def deployed_files(jobs):
    """deploy/slurm from text to a trained model, stopped in between."""
    data, words = jobs.folder / "fsx", jobs.corpus
    (data / "gpt2").mkdir(parents=True)
    shutil.copy(jobs.folder / "stories.jsonl", data / "gpt2/oscar-1GB.jsonl")
    shutil.copy(words.vocab_file, data / "gpt2/gpt2-vocab.json")
    shutil.copy(words.merge_file, data / "gpt2/gpt2-merges.txt")
    (data / "llama2").mkdir()
    shutil.copy(jobs.folder / "stories.jsonl", data / "llama2/oscar-1GB.jsonl")
    small = dict(DATA_PATH=data, BLOOMERY=jobs.program.path, WORKERS=1, RANKS_PER_NODE=2, NUM_LAYERS=2, HIDDEN_SIZE=32,
                 NUM_ATTENTION_HEADS=4, SEQ_LENGTH=32, TENSOR_PARALLEL=2, GLOBAL_BATCH_SIZE=4, SAVE_INTERVAL=50,
                 PRECISION="fp32", EXTRA_ARGS="--device cpu --num-threads 1")
    gpt = dict(small, TRAIN_SAMPLES=2000)
    llama = dict(small, TOKENIZER_MODEL=SHARED_DATA / "tokenizers/sentencepiece/llama2.model", TRAIN_ITERS=500,
                 FFN_HIDDEN_SIZE=64, NUM_KEY_VALUE_HEADS=2)
    run_file(jobs, "1.data-preprocessing.sbatch", gpt)
    expect_stopped_and_resumed(jobs, "2.distributed-training.sbatch", gpt)
    run_file(jobs, "3.data-preproc-llama2.sbatch", llama)
    expect_stopped_and_resumed(jobs, "4.pre-train-llama2.sbatch", llama)


def start_file(jobs, name, variables):
    environment = [f"{variable}={value}" for variable, value in variables.items()]
    said = jobs.cluster.run("env", *environment, "sbatch", ROOT / "deploy/slurm" / name, cwd=jobs.folder)
    job = said.split()[-1]
    return job, jobs.folder / f"{name.split('.')[1]}_{job}.out"


def run_file(jobs, name, variables):
    job, log = start_file(jobs, name, variables)
    assert jobs.cluster.finish(job, log) == 0, tail(log)
    return log


def expect_stopped_and_resumed(jobs, name, variables):
    whole, save = jobs.folder / (name + ".whole"), jobs.folder / (name + ".save")
    run_file(jobs, name, {**variables, "CHECKPOINT_PATH": whole})
    job, log = start_file(jobs, name, {**variables, "CHECKPOINT_PATH": save})
    jobs.wait_for_step(job, save, log, 100)
    jobs.cluster.run("scancel", "--signal=TERM", job)
    assert jobs.cluster.finish(job, log) == 1, tail(log)
    expect_same_end(jobs.program, save, whole)


SCENARIOS = [two_and_four_nodes, told_to_stop, process_per_node, time_limit, preemption, killed_node, cancelled, plain_srun, logs_and_staging,
             deployed_files]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("--only")
    options = parser.parse_args()
    missing = missing_programs() or ([] if os.geteuid() == 0 else ["root's rights"])
    if missing:
        print(f"slurm: left out: no {', '.join(missing)}; tools/install_packages slurm brings the programs")
        return 1 if os.environ.get("BLOOMERY_REQUIRE_PROGRAMS") else SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "data"
        (folder.parent / "slurm").mkdir()
        folder.mkdir()
        program = Program(options.bloomery)
        corpus = make_stories(program, folder)
        with Cluster(folder.parent / "slurm") as cluster:
            jobs = Jobs(program, cluster, corpus, folder)
            for scenario in SCENARIOS:
                if options.only in (None, scenario.__name__):
                    begin = time.time()
                    scenario(jobs)
                    print(f"{scenario.__name__}: as one undisturbed run, {time.time() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
