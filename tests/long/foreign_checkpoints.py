#!/usr/bin/env python3
"""Checkpoints that Megatron-DeepSpeed's own code and DeepSpeed write, taken over by us and given back to them.

    build/oracle/bin/python tests/long/foreign_checkpoints.py BLOOMERY CHECKOUT [NAME...] [--runs FOLDER]

CHECKOUT is Megatron-DeepSpeed at commit 6acc370a; a copy of it is used. Each run of tools/golden/foreign_runs.py (all, or those
named) is trained there on CPU ranks and saved in the middle, in FOLDER if it is not there already. Of that checkpoint

- every weight and moment that we read is, bit for bit, what torch makes of the files;
- we go on with the same command line and the losses are those of the run that was never interrupted;
- what `convert` writes of it for other ranks, torch reads as the same bits; what `zero_to_fp32` and `ds_to_universal` write is, name by name and bit for
  bit, what DeepSpeed's programs of these names make of it;
- Megatron's and DeepSpeed's own code goes on from what `convert` wrote, with the same losses."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

import torch
from safetensors.torch import load_file

from training import ROOT

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # arguments are objects of Megatron's

TOOLS = ROOT / "tools/golden"
sys.path.append(str(TOOLS))  # behind packages, whose names files there have
import foreign  # noqa: E402
import foreign_runs  # noqa: E402
import megatron_samples  # noqa: E402

# By how much losses may differ: rounding of the computation, which those steps amplify.
TOLERANCE = {"fp32": 1e-6, "fp16": 1.5e-3, "bf16": 4e-3}
# What of them trains in fp16 without ZeRO divides gradients by a scale that the loss was not multiplied by: what multiplies it is
# set in a configuration that their schedules do not read, and DeepSpeed's wrapper has nothing of the kind. Beside such moments
# gradients of ours are large, and only the first loss, which no step of ours precedes, is the same.
UNSCALED = re.compile(r"mega_fp16.*|ds_fp16_t.p.z0|ds_fp16_t.p.d2z0|ds_moe_e2z0")


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


class Theirs:
    """Runs of Megatron-DeepSpeed in a folder."""

    def __init__(self, checkout, folder, runs):
        self.megatron, self.folder = folder / "megatron", runs or folder / "runs"
        shutil.copytree(checkout, self.megatron)
        megatron_samples.compile_helpers(self.megatron / "megatron/data")
        sys.path.append(str(self.megatron))  # its arguments are objects of its classes
        self.folder.mkdir(exist_ok=True)
        for ending in ("bin", "idx"):
            shutil.copy(ROOT / f"tests/golden/foreign/tiny_text_document.{ending}", self.folder)

    def train(self, *names):
        return run(sys.executable, "-B", TOOLS / "foreign_runs.py", self.megatron, self.folder, *names,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})

    def checkpoint(self, name):
        return next(f for f in sorted((self.folder / name).iterdir()) if re.match("iter_|global_step", f.name))

    def losses(self, name):
        return [float(x) for x in (self.folder / name / "losses.txt").read_text().split()]


def crc(tensor):
    return zlib.crc32(tensor.contiguous().numpy().tobytes())


def read_by_us(bloomery, checkpoint, folder):
    run(bloomery, "convert", "--input", checkpoint, "--output", folder, "--to", "native")
    found = {}
    for file in folder.glob("step-*/rank-*.safetensors"):
        found.update({name: crc(tensor) for name, tensor in load_file(file).items()})
    return found


def without_padding(sums):
    return {name: value for name, value in sums.items() if "/padding" not in name}


def near(found, expected, tolerance):
    return len(found) == len(expected) and all(abs(a - b) <= tolerance * b for a, b in zip(found, expected))


def our_losses(bloomery, name, checkpoint, corpus):
    """Of the steps after a checkpoint, by the command line of the run, each rank a thread."""
    case = foreign_runs.RUNS[name]
    words = f"{foreign_runs.COMMON} {case.flags}".replace("--data-path tiny_text_document", f"--data-path {corpus}").split()
    words += ["--zero-stage", case.zero] if case.zero is not None else []
    out = run(bloomery, "pretrain_gpt", *words, "--load", checkpoint, "--padded-vocab-in-softmax", "--ranks-as-threads", case.ranks, "--device", "cpu",
              "--num-threads", 1)
    return [float(x) for x in re.findall(r"lm loss: ([-+.\dE]+)", out)]


def layout_of(name):
    """Tensor, pipeline and expert ranks that we write for, and the run of theirs that goes on from it."""
    case = foreign_runs.RUNS[name]
    tensor, pipeline = (int(case.flag(f"--{kind}-model-parallel-size", 1)) for kind in ("tensor", "pipeline"))
    expert = int(case.flag("--moe-expert-parallel-size", 1))
    if name.startswith("mega") or expert > 1:
        return tensor, pipeline, expert, name
    return tensor, pipeline, expert, f"ds_{case.dtype}_t{tensor}p{pipeline}z1"


def goes_on_there(name):
    """Whether there is a run of theirs that takes what we write: pipelines in chunks and experts that tensor ranks divide have no such form of ours."""
    return not re.search("p4v2|dist|residual|et$|e2z0|moe_e2|t2e2z1", name)


def check_zero_to_fp32(bloomery, checkpoint, folder):
    """Of ranks that divide nothing but the data: it knows no tensor ranks."""
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    run(bloomery, "zero_to_fp32", checkpoint.parent, folder, "-t", checkpoint.name)
    theirs, ours = get_fp32_state_dict_from_zero_checkpoint(str(checkpoint.parent), tag=checkpoint.name), torch.load(folder / "pytorch_model.bin")
    assert set(ours) == set(theirs) and all(torch.equal(ours[name], theirs[name].float()) for name in ours), f"zero_to_fp32 of {checkpoint}"


def check_ds_to_universal(bloomery, megatron, checkpoint, folder):
    code = "from deepspeed.checkpoint.ds_to_universal import main, parse_arguments; main(parse_arguments())"
    run(sys.executable, "-c", code, "--input_folder", checkpoint, "--output_folder", folder / "theirs", "--num_extract_workers", 1, "--num_merge_workers", 1,
        env={**os.environ, "PYTHONPATH": str(megatron), "OMP_NUM_THREADS": "1"})
    run(bloomery, "ds_to_universal", "--input_folder", checkpoint, "--output_folder", folder / "ours")
    files = [sorted(str(f.relative_to(folder / whose)) for f in (folder / whose).glob("zero/*/*.pt")) for whose in ("ours", "theirs")]
    assert files[0] == files[1] != [], f"ds_to_universal of {checkpoint}: {set(files[0]) ^ set(files[1])}"
    for file in files[0]:
        ours, theirs = (foreign.load(folder / whose / file) for whose in ("ours", "theirs"))
        ours, theirs = (x if isinstance(x, dict) else {"param": torch.as_tensor(x)} for x in (ours, theirs))
        for part in (ours, theirs):
            part["param"] = part["param"].float()
        assert torch.equal(ours.pop("param"), theirs.pop("param")) and ours == theirs, f"ds_to_universal of {checkpoint}: {file}"


def check_one(bloomery, theirs, name, folder):
    case, checkpoint, expected = foreign_runs.RUNS[name], theirs.checkpoint(name), theirs.losses(name)
    sums = foreign.checksums(str(checkpoint))
    ours = read_by_us(bloomery, checkpoint, folder / "native")
    different = sorted(n for n in {*ours, *sums} if ours.get(n) != sums.get(n))
    assert not different, f"{name}: other numbers in {different[:5]}"
    what = [f"{len(sums)} tensors"]

    tolerance = TOLERANCE[case.dtype]
    if case.script == "gpt":
        found = our_losses(bloomery, name, checkpoint, theirs.folder / "tiny_text_document")
        count = 1 if UNSCALED.fullmatch(name) else len(expected)
        assert near(found[:count], expected[:count], tolerance), f"{name}: losses {found} instead of {expected}"
        what.append(f"losses {found} for {expected}")

    tensor, pipeline, expert, again = layout_of(name)
    form = "megatron" if name.startswith("mega") else "deepspeed"
    more = ["--expert", expert] if expert > 1 else []
    run(bloomery, "convert", "--input", checkpoint, "--output", folder / "back", "--to", form, "--tensor", tensor, "--pipeline", pipeline, *more)
    written = next(f for f in (folder / "back").iterdir() if f.is_dir())
    assert without_padding(foreign.checksums(str(written))) == without_padding(sums), f"{name}: other numbers in what is written"
    if re.fullmatch("ds_.*_t1p1d2z[123]", name):
        check_zero_to_fp32(bloomery, checkpoint, folder / "exact")
        what.append("zero_to_fp32")
    if re.fullmatch("ds_.*16_t.p2d2z1", name):
        check_ds_to_universal(bloomery, theirs.megatron, checkpoint, folder)
        what.append("ds_to_universal")
    print(f"{name}: {', '.join(what)}", flush=True)
    return (name, again, folder / "back") if goes_on_there(name) else None


def check_there(theirs, written):
    """Their code goes on from all that was written."""
    lines = theirs.train(*(f"{again}={folder}" for _, again, folder in written)).splitlines()[-len(written):]
    failures = 0
    for (name, _, folder), line in zip(written, lines, strict=True):
        case, expected = foreign_runs.RUNS[name], theirs.losses(name)
        found = [float(x) for x in re.findall(r"[\d.]+E[-+]\d+", line.split(str(folder))[1])]
        count = 1 if UNSCALED.fullmatch(name) else len(expected)
        same = near(found[:count], expected[:count], TOLERANCE[case.dtype])
        failures += not same
        print(f"{'' if same else 'FAILED '}{name}: Megatron-DeepSpeed goes on with losses {found} for {expected}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(foreign_runs.RUNS))
    parser.add_argument("--runs", type=pathlib.Path)
    a = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as root:
        theirs = Theirs(a.checkout, pathlib.Path(root), a.runs)
        missing = [name for name in a.names if not (theirs.folder / name / "losses.txt").exists()]
        if missing:
            theirs.train(*missing)
        written = []
        for name in a.names:
            folder = pathlib.Path(root) / "ours" / name
            folder.mkdir(parents=True)
            try:
                written.append(check_one(a.bloomery, theirs, name, folder))
            except AssertionError as error:
                failures += 1
                print(f"FAILED {error}", flush=True)
        written = [one for one in written if one]
        failures += check_there(theirs, written) if written else 0
    print(f"{len(a.names) - failures} checkpoints of Megatron-DeepSpeed taken over and given back")
    sys.exit(f"{failures} failed" if failures else 0)


if __name__ == "__main__":
    main()
