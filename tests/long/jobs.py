#!/usr/bin/env python3
"""Jobs of PBS and Kubernetes, played by processes that have the variables which these give.

    build/lint/bin/python -B tests/long/jobs.py BLOOMERY [--only NAME]

What `bloomery launch --to pbs|kubernetes` writes, and deploy/alcf/train-gpt3.pbs, train 4 ranks on 2 nodes, stop early and go
on, with the bits and the losses of a run that went through."""
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import yaml

from training import ROOT, Program, expect_equal, expect_same_checkpoint, expect_whole_run, flags, make_stories, metrics, steps, tiny

RANKS, NODES = 4, 2
ITERATIONS = 3000

# PALS' mpiexec: starts -n ranks, --ppn on each node, passes SIGUSR1 on, and ends with the largest code.
MPIEXEC = """\
#!/usr/bin/env python3
import os, signal, subprocess, sys
words, options = sys.argv[1:], {}
while words[0] in ("-n", "--ppn", "--hostfile", "--cpu-bind", "-d"):
    options[words[0]], words = words[1], words[2:]
size, per_node = int(options["-n"]), int(options["--ppn"])
ranks = []
for rank in range(size):
    said = dict(PALS_RANKID=rank, PMI_RANK=rank, PMI_SIZE=size, PALS_NODEID=rank // per_node, PALS_APID="played",
                PALS_LOCAL_RANKID=rank % per_node, PALS_LOCAL_SIZE=per_node)
    ranks.append(subprocess.Popen(words, env={**os.environ, **{name: str(value) for name, value in said.items()}}))
signal.signal(signal.SIGUSR1, lambda *_: [rank.send_signal(signal.SIGUSR1) for rank in ranks])
sys.exit(max(rank.wait() for rank in ranks))
"""
QSUB = """\
#!/bin/bash
echo "$@" >>"$PLAYED/submitted"
"""


class Played:
    def __init__(self, program, corpus, folder):
        self.program, self.corpus, self.folder = program, corpus, folder
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        for name, text in {"mpiexec": MPIEXEC, "qsub": QSUB}.items():
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o755)
        (bin_folder / "bloomery").symlink_to(program.path)
        (folder / "hosts").write_text("127.0.0.1\n" * NODES)
        self.environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PLAYED": str(folder),
                            "PBS_NODEFILE": str(folder / "hosts"), "PBS_O_WORKDIR": str(folder), "PBS_JOBID": "1.played"}

    def training(self, save):
        return ["pretrain", "--device", "cpu", "--num-threads", 1,
                *tiny(self.corpus, num_layers=1, hidden_size=32, train_iters=ITERATIONS, save_interval=200, eval_interval=1000,
                      global_batch_size=8, zero_stage=1, keep_last=3, save=save, load=save)]

    def undisturbed(self):
        save = self.folder / "whole"
        if not save.exists():
            self.program("launch", "-n", RANKS, *self.training(save))
        return save

    def write(self, file, *options, save):
        self.program("launch", *options, "--output", file, *flags(nodes=NODES, gpus_per_node=0, ranks_per_node=RANKS // NODES),
                     *self.training(save))
        return file

    def run_script(self, script, expected, **variables):
        done = subprocess.run(["bash", str(script)], env={**self.environment, **{k: str(v) for k, v in variables.items()}},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
        assert done.returncode == expected, f"exit code {done.returncode} instead of {expected}\n{done.stdout[-3000:]}"
        return done.stdout

    def submissions(self):
        path = self.folder / "submitted"
        return path.read_text().splitlines() if path.exists() else []


def expect_early_stop(log, save):
    assert "SIGUSR1" in log and 0 < max(steps(save)) < ITERATIONS, log[-3000:]


def pbs(played):
    """A limit of 5 s, 3 of them for the checkpoint, then one that suffices."""
    for process in "rank", "node":
        save, script = played.folder / f"pbs-{process}", played.folder / f"pbs-{process}.sh"
        options = ["--to", "pbs", "--process-per", process, "--grace-seconds", 3, "--output-folder", played.folder / "logs"]
        before = len(played.submissions())
        played.write(script, *options, "--time", "0:05", save=save)
        port = dict(MASTER_PORT=free_port())
        played.run_script(script, 75, **port)
        expect_early_stop("".join(path.read_text() for path in (played.folder / "logs").iterdir()), save)
        assert played.submissions()[before:] == [str(script)], played.submissions()
        played.write(script, *options, save=save)
        played.run_script(script, 0, **port)
        assert len(played.submissions()) == before + 1, "a finished job was submitted again"
        expect_whole_run(played.program, save, played.undisturbed())
        assert (played.folder / "logs/rank-3.log").exists(), list((played.folder / "logs").iterdir())
        shutil.rmtree(played.folder / "logs")


def alcf(played):
    """deploy/alcf/train-gpt3.pbs with variables of ALCF's script."""
    script = ROOT / "deploy/alcf/train-gpt3.pbs"
    variables = dict(MODEL_SIZE_KEY="GPT125M", SEQ_LEN=32, MICRO_BATCH=1, GAS=2, SP_TYPE="megatron", MPSIZE=2, ZERO_STAGE=1,
                     USE_FLASH_ATTN_V2=1, NGPU_PER_HOST=RANKS, DATA_PATH=played.corpus.prefix, TRAIN_ITERS=4000,
                     SAVE_INTERVAL=500, PRECISION="fp32", TOKENIZER=played.folder / "tokenizer",
                     EXTRA_ARGS="--device cpu --num-threads 1 --num-layers 1 --hidden-size 32 --num-attention-heads 4")
    whole, save = played.folder / "alcf-whole", played.folder / "alcf"
    log = played.run_script(script, 0, CHECKPOINT_PATH=whole, **variables)
    assert "this is rank 0 of 4, as PALS' mpiexec says" in log, log[-2000:]
    before = len(played.submissions())
    played.run_script(script, 75, CHECKPOINT_PATH=save, WALL_SECONDS=302, **variables)
    assert played.submissions()[before:] == [f"-V {script}"], played.submissions()
    played.run_script(script, 0, CHECKPOINT_PATH=save, **variables)
    expect_same_checkpoint(played.program, save / "step-4000", whole / "step-4000")
    expect_equal("metrics.jsonl", metrics(save), metrics(whole))


def mpirun(played):
    """The script under the mpirun of Open MPI and of MPICH."""
    root = dict(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, OMPI_MCA_rmaps_base_oversubscribe=1)
    for name in "mpirun.openmpi", "mpirun.mpich":
        found = shutil.which(name)
        if found is None:
            assert not os.environ.get("BLOOMERY_REQUIRE_PROGRAMS"), f"no {name}: tools/install_packages test"
            print(f"  left out {name}: it is not here")
            continue
        link = played.folder / "bin/mpirun"
        link.unlink(missing_ok=True)
        if name == "mpirun.mpich":  # a link would hide its programs beside it
            link.write_text(f'#!/bin/bash\nexec {found} "$@"\n')
            link.chmod(0o755)
        else:  # it tells its name by how it was called
            link.symlink_to(found)
        save, script = played.folder / name, played.folder / f"{name}.sh"
        options = ["--to", "mpi", "--output", script, "--nodes", 1, "--gpus-per-node", 0, "--ranks-per-node", RANKS]
        training = played.training(save)
        played.program("launch", *options, "--time", "0:05", "--grace-seconds", 3, *training)
        expect_early_stop(played.run_script(script, 75, **root), save)
        played.program("launch", *options, *training)
        played.run_script(script, 0, **root)
        newest = max(steps(save))
        expect_same_checkpoint(played.program, save / f"step-{newest}", played.undisturbed() / f"step-{newest}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def pods_of(manifest):
    """The container of each pod, with the variables that Kubernetes and the operator give it."""
    port, pods = free_port(), []
    for document in yaml.safe_load_all(manifest):
        spec = document.get("spec", {})
        if document["kind"] == "PyTorchJob":
            roles = spec["pytorchReplicaSpecs"]
            templates = [roles["Master"]["template"]] + [roles["Worker"]["template"]] * roles["Worker"]["replicas"]
            given = [dict(RANK=rank, WORLD_SIZE=len(templates), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, PET_NODE_RANK=rank)
                     for rank in range(len(templates))]
        elif document["kind"] in ("Job", "JobSet"):
            job = spec["replicatedJobs"][0]["template"]["spec"] if document["kind"] == "JobSet" else spec
            templates = [job["template"]] * job["completions"]
            given = [dict(JOB_COMPLETION_INDEX=index) for index in range(job["completions"])]
        else:
            continue
        pods += list(zip([template["spec"]["containers"][0] for template in templates], given))
    return pods, port


def start_pod(played, container, given, port, log):
    """As a kubelet starts it. There are no names of pods here, and every pod is on this machine."""
    words = [re.sub(r"(?<!\$)\$\((\w+)\)", lambda found: str(given[found[1]]), word).replace("$$(", "$(")
             for word in container["command"] + container["args"]]
    words = [re.sub(r"^--master_addr=.*", "--master_addr=127.0.0.1", word) for word in words]
    words = [re.sub(r"^--master_port=.*", f"--master_port={port}", word) for word in words]
    variables = {**played.environment, "BLOOMERY_SECRET": "0123456789abcdef" * 2, **{k: str(v) for k, v in given.items()}}
    return subprocess.Popen(words, env=variables, stdout=log, stderr=subprocess.STDOUT)


def kubernetes(played):
    for kind in "job", "jobset", "pytorchjob":
        save, manifest = played.folder / kind, played.folder / f"{kind}.yaml"
        played.write(manifest, "--to", "kubernetes", "--kind", kind, "--container", "image:1", save=save)
        codes = []
        for evicted in True, False:
            pods, port = pods_of(manifest.read_text())
            assert len(pods) == NODES, pods
            with open(played.folder / f"{kind}.log", "a") as log:
                processes = [start_pod(played, *pod, port, log) for pod in pods]
                if evicted:
                    while max(steps(save), default=0) < 400:
                        assert processes[0].poll() is None, (played.folder / f"{kind}.log").read_text()[-3000:]
                        time.sleep(0.1)
                    processes[1].send_signal(signal.SIGTERM)
                codes.append([process.wait(timeout=600) for process in processes])
        log = (played.folder / f"{kind}.log").read_text()
        assert codes == [[75] * NODES, [0] * NODES], f"exit codes {codes}\n{log[-3000:]}"
        expect_whole_run(played.program, save, played.undisturbed())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("--only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = Program(options.bloomery)
        played = Played(program, make_stories(program, folder), folder)
        for scenario in pbs, alcf, mpirun, kubernetes:
            if options.only in (None, scenario.__name__):
                scenario(played)
                print(f"{scenario.__name__}: as one undisturbed run", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
