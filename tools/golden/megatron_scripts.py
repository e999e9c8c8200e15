#!/usr/bin/env python3
"""Writes tests/golden/megatron_scripts.json: the argument lists of Megatron-DeepSpeed's GPT scripts.

    tools/golden/megatron_scripts.py CHECKOUT

Each script of CHECKOUT/examples_deepspeed that trains a GPT runs in a copy, on a machine of one GPU
made of stand-ins for the launchers, which write down what they are called with; its parallel degrees
and numbers of GPUs are set to 1, as its comments ask of the reader. Kept are the
arguments behind pretrain_gpt.py and the DeepSpeed configuration as the script wrote it.
"""
import json
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
  ds_ssh) printf 'a\\nb\\ngpu\\n' ;;
  nvidia-smi) echo gpu ;;
  date) echo DATE ;;
  ssh) exit 1 ;;
esac
exit 0
"""
STAND_INS = "deepspeed torchrun ds_ssh nvidia-smi date ssh wget pip python python3 whoami hostname".split()
LEFT_OUT = re.compile(r"bert|eval|generate|analyze|tb_analysis|_run\.sh|finetune|ds_pretrain_gpt2\.sh|base_script")
# What each script asks its reader to set for the machine at hand.
DEGREES = re.compile(r"(?m)^(\s*(?:mp_size|pp_size|sp_size|num_gpus|num_gpus_pernode|MP_SIZE|PP_SIZE|SP_SIZE|NUM_GPUS|TP|PP|DP|SP|MP))=[^\n#]*")
CONFIG = "DEEPSPEED_CONFIG"


def run(script, home, record):
    text = DEGREES.sub(r"\1=1", script.read_text())
    text = re.sub(r'(["=])/(blob|vc_data|data|code|mnt)', r"\1./\2", text)
    copy = script.with_name("copy_" + script.name)
    copy.write_text(text)
    for folder in ("tmp", "dataset"):
        (script.parent / folder).mkdir(exist_ok=True)
    variables = dict(os.environ, PATH=f"{home}/bin:{os.environ['PATH']}", RECORD=str(record), HOSTNAME="HOST")
    subprocess.run(["bash", copy.name], cwd=script.parent, env=variables, timeout=20, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def entry(script, home, record):
    words = record.read_bytes().decode().split("\0")[:-1]
    program = next(i for i, word in enumerate(words) if word.endswith("pretrain_gpt.py"))
    arguments, config = [], None
    flat = [part for word in words[program + 1:] for part in
            (word.split("=", 1) if word.startswith("--") and "=" in word else [word])]
    for i, word in enumerate(flat):
        if i and flat[i - 1].replace("_", "-") == "--deepspeed-config":
            config = json.loads((script.parent / word).read_text())
            word = CONFIG
        arguments.append(word.replace(f"{home}/", ""))
    return {"name": str(script.relative_to(home / "examples_deepspeed")), "arguments": arguments, "deepspeed": config}


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder).resolve()
        shutil.copytree(pathlib.Path(sys.argv[1]) / "examples_deepspeed", home / "examples_deepspeed")
        (home / "bin").mkdir()
        for name in STAND_INS:
            (home / "bin" / name).write_text(RECORDER)
            (home / "bin" / name).chmod(0o755)
        found = []
        for script in sorted((home / "examples_deepspeed").rglob("*.sh")):
            if LEFT_OUT.search(str(script.relative_to(home))):
                continue
            record = home / "record"
            record.unlink(missing_ok=True)
            run(script, home, record)
            if not record.exists():
                print(f"{script.relative_to(home)}: did not start anything")
                continue
            try:
                found.append(entry(script, home, record))
            except (StopIteration, json.JSONDecodeError, OSError) as error:
                print(f"{script.relative_to(home)}: {error!r}")
    lines = ",\n".join(json.dumps(item) for item in found)
    (root / "tests/golden/megatron_scripts.json").write_text(f"[\n{lines}\n]\n")
    print(len(found), "scripts")


main()
