#!/usr/bin/env python3
"""Writes tests/golden/megatron_scripts.json: the argument lists of Megatron-DeepSpeed's scripts that train.

    tools/golden/megatron_scripts.py CHECKOUT

Each script of CHECKOUT/examples and CHECKOUT/examples_deepspeed that calls one of PROGRAMS runs in a copy, on a
machine made of stand-ins for the launchers, which write down what they are called with. The machine has as many
GPUs as hold one model by the degrees that the script asks for, so that its data-parallel degree is 1. Kept are
the program, the arguments behind it and the DeepSpeed configuration as the script wrote it. Of scripts that are lists of setups in
comments (*_run.sh of data_efficiency) each setup is one script.
"""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RECORDER = """#!/bin/bash
case $(basename "$0") in
  deepspeed|torchrun) printf '%s\\0' "$@" > "$RECORD" ;;
  python) case "$1" in pretrain_*) printf '%s\\0' "$@" > "$RECORD" ;; esac ;;
  ds_ssh) printf 'a\\nb\\ngpu\\n' ;;
  nvidia-smi) echo gpu ;;
  date) echo DATE ;;
  ssh) exit 1 ;;
esac
exit 0
"""
STAND_INS = "deepspeed torchrun ds_ssh nvidia-smi date ssh wget pip python python3 whoami hostname".split()
PROGRAMS = re.compile(r"(pretrain_(?:gpt|bert|t5|ict))\.py$")
SETUPS = "examples_deepspeed/data_efficiency/*/pretrain/*_run.sh"
LEFT_OUT = re.compile(r"eval|generate|analyze|tb_analysis|_run\.sh|finetune|ds_pretrain_gpt2\.sh|base_script|"
                      r"examples/(sc21|msdp|detxoify_lm|run_text|merge_mp)")
# What each script asks its reader to set for the machine at hand.
NUM_GPUS = re.compile(r"(?m)^(\s*(?:num_gpus|num_gpus_pernode|NUM_GPUS))=[^\n#]*")
DATA_DEGREE = re.compile(r"(?m)^(\s*DP)=[^\n#]*")
DEGREES = ["--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--ds-sequence-parallel-size"]
CONFIG = "DEEPSPEED_CONFIG"
# What a script leaves in the template of its configuration, as its siblings fill it in.
UNFILLED_VALUES = {"ZERO_STAGE": "0", "PRESCALE_GRAD": "true"}
UNFILLED = re.compile("|".join(UNFILLED_VALUES))


def for_here(text, num_gpus):
    text = DATA_DEGREE.sub(r"\1=1", NUM_GPUS.sub(rf"\g<1>={num_gpus}", text))
    text = re.sub(r'(["=])/(blob|vc_data|data|code|mnt)', r"\1./\2", text)
    return re.sub(r"<Specify[^>]*>", "PATH", text)


def run(script, home, record, num_gpus):
    text = for_here(script.read_text(), num_gpus)
    copy = script.with_name("copy_" + script.name)
    copy.write_text(text)
    for folder in ("tmp", "dataset"):
        (script.parent / folder).mkdir(exist_ok=True)
    variables = dict(os.environ, PATH=f"{home}/bin:{os.environ['PATH']}", RECORD=str(record), HOSTNAME="HOST")
    subprocess.run(["bash", copy.name], cwd=script.parent, env=variables, timeout=120, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def entry(script, home, record):
    words = record.read_bytes().decode().split("\0")[:-1]
    program = next(i for i, word in enumerate(words) if PROGRAMS.search(word))
    arguments, config = [], None
    flat = [part for word in words[program + 1:] for part in
            (word.split("=", 1) if word.startswith("--") and "=" in word else [word])]
    for i, word in enumerate(flat):
        if i and flat[i - 1].replace("_", "-") == "--deepspeed-config":
            config = json.loads(UNFILLED.sub(lambda left: UNFILLED_VALUES[left[0]],
                                             (script.parent / word).read_text()))
            word = CONFIG
        arguments.append(word.replace(f"{home}/", ""))
    return {"name": str(script.relative_to(home)).removeprefix("examples_deepspeed/"),
            "program": PROGRAMS.search(words[program])[1], "arguments": arguments, "deepspeed": config}


def ranks(arguments):
    """That hold one model."""
    degrees = [int(arguments[arguments.index(flag) + 1]) for flag in DEGREES if flag in arguments]
    return math.prod(degrees)


def record_script(script, home):
    """Once on a machine that is large enough, to learn the degrees, and once on one that just is."""
    num_gpus, found = 64, None
    for _ in range(2):
        record = home / "record"
        record.unlink(missing_ok=True)
        run(script, home, record, num_gpus)
        if not record.exists():
            print(f"{script.relative_to(home)}: did not start anything")
            return None
        try:
            found = entry(script, home, record)
        except (StopIteration, json.JSONDecodeError, OSError) as error:
            print(f"{script.relative_to(home)}: {error!r}")
            return None
        num_gpus = ranks(found["arguments"])
    return found


def setups(script):
    """The blocks of a list as scripts: their titles, and what is left when they are no comments."""
    for block in re.split(r"(?m)^#{20,}$", script.read_text()):
        titles = re.findall(r"(?m)^## (.*):$", block)
        lines = [line[2:] for line in block.splitlines() if line.startswith("# ")]
        if titles and any(line.startswith("bash ") for line in lines):
            yield titles[-1], "\n".join(lines)


def record_setups(script, home):
    for base in script.parent.glob("*_base_script.sh"):
        base.write_text(for_here(base.read_text(), 1))
    found = []
    for title, text in setups(script):
        one = script.with_name("setup.sh")
        one.write_text(text)
        if (recorded := record_script(one, home)) is not None:
            found.append({**recorded, "name": f"{script.relative_to(home / 'examples_deepspeed')}, {title}"})
    return found


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder).resolve()
        for name in ("examples", "examples_deepspeed"):
            shutil.copytree(pathlib.Path(sys.argv[1]) / name, home / name)
        (home / "bin").mkdir()
        for name in STAND_INS:
            (home / "bin" / name).write_text(RECORDER)
            (home / "bin" / name).chmod(0o755)
        found = []
        for script in sorted(home.glob("examples*/**/*.sh")):
            if LEFT_OUT.search(str(script.relative_to(home))):
                continue
            if (recorded := record_script(script, home)) is not None:
                found.append(recorded)
        for script in sorted(home.glob(SETUPS)):
            found += record_setups(script, home)
    lines = ",\n".join(json.dumps(item) for item in found)
    (root / "tests/golden/megatron_scripts.json").write_text(f"[\n{lines}\n]\n")
    print(len(found), "scripts")


main()
