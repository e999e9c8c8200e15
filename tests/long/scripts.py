#!/usr/bin/env python3
"""Command lines of Megatron-DeepSpeed as they stand in its scripts and its README, run on a corpus of ours.

    build/oracle/bin/python tests/long/scripts.py BLOOMERY [--device cuda] [--only NAME] [--seeds] [--readme-steps 2]

Changed are program name, paths and sizes: as many narrow layers and heads as the parallel degrees need, short sequences, three
steps of a small batch. Tensor, pipeline and sequence degrees stay, each rank a thread. docs/scripts.md says which are accepted;
all of those run here, among them TEN; with --seeds those alone that people start from. The README's command for 345M parameters
on one GPU keeps everything but, on a CPU, the number of layers, and stops after a few of its 500,000 iterations."""
import argparse
import json
import lzma
import os
import pathlib
import re
import sys
import tempfile
import time

from training import ROOT, SHARED_DATA, Program, flags, steps

TEN = ["MoE/ds_pretrain_gpt_1.3B_dense.sh", "MoE/ds_pretrain_gpt_350M_dense.sh", "pretrain_llama_distributed.sh",
       "pretrain_llama2_distributed.sh", "rebase/ds_pretrain_gpt_125M.sh", "rebase/ds_pretrain_gpt_125M_flashattn.sh",
       "rebase/ds_pretrain_gpt_1.3B_rope.sh", "sequence_parallel/ds_pretrain_gpt_1.3B_seq_parallel_32k.sh",
       "universal_checkpointing/llama/run_llama_bf16.sh", "universal_checkpointing/megatron_gpt/run_fp16.sh"]
ONE_GPU = "README, 345M on one GPU"
DISTRIBUTED = "README, 345M distributed"  # on 8 ranks, two for the data
SEEDS = [DISTRIBUTED, "AWS sample, 7.5B", "AWS sample, Llama-2 70B", "ALCF, GPT25B", "rebase/ds_pretrain_gpt_125M_flashattn.sh"]
NUM_STEPS, SEQUENCE = 3, 64


def read_scripts(name):
    return json.loads((ROOT / "tests/golden" / name).read_text())


def accepted_scripts():
    page = (ROOT / "docs/scripts.md").read_text()
    accepted = {name: int(ranks or 1) for name, ranks in re.findall(r"^\| (.*) \| accepted(?:, (\d+) ranks)? \|$", page, re.M)}
    accepted[DISTRIBUTED] *= 2
    named = {*TEN, *SEEDS, ONE_GPU}
    assert named <= set(accepted), f"no longer accepted: {sorted(named - set(accepted))}"
    scripts = read_scripts("readme_commands.json") + read_scripts("megatron_scripts.json")
    return [{**script, "ranks": accepted[script["name"]]} for script in scripts if script["name"] in accepted]


class Data:
    """A corpus for each of the two tokenizers of the scripts."""

    def __init__(self, program, folder):
        gpt2 = SHARED_DATA / "tokenizers/gpt2"
        self.vocab, self.merges = gpt2 / "gpt2-vocab.json", gpt2 / "gpt2-merges.txt"
        self.llama = SHARED_DATA / "tokenizers/sentencepiece/llama2.model"
        text, stories = folder / "my-corpus.json", folder / "stories.jsonl"
        text.write_bytes(lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()))
        program("data", "stories", *flags(output=stories, count=4000))
        # The README's command, word by word.
        program("preprocess_data", *flags(input=text, output_prefix=folder / "my-gpt2", vocab=self.vocab, dataset_impl="mmap",
                                          tokenizer_type="GPT2BPETokenizer", merge_file=self.merges, append_eod=True))
        program("preprocess_data", *flags(input=stories, output_prefix=folder / "llama", append_eod=True,
                                          tokenizer_type="GPTSentencePieceTokenizer", tokenizer_model=self.llama))
        self.gpt2_corpus, self.llama_corpus = folder / "my-gpt2_text_document", folder / "llama_text_document"


def replace(arguments, changes):
    """Values behind flags that are there."""
    result = list(arguments)
    for flag, value in changes.items():
        for i, word in enumerate(arguments):
            if word == flag:
                result[i + 1] = str(value)
    return result


def local_paths(arguments, data, folder):
    sentencepiece = "--tokenizer-model" in arguments
    corpus = str(data.llama_corpus if sentencepiece else data.gpt2_corpus)
    at = arguments.index("--data-path") + 1
    at += arguments[at] == "1"  # a weight comes first
    return replace(arguments[:at] + [corpus] + arguments[at + 1:], {
        "--vocab-file": data.vocab, "--merge-file": data.merges, "--tokenizer-model": data.llama, "--save": folder / "save",
        "--load": folder / "save", "--tensorboard-dir": folder / "events"})


def value_of(arguments, flag):
    return int(arguments[arguments.index(flag) + 1]) if flag in arguments else None


def degree(arguments, flag):
    return value_of(arguments, flag) or 1


def smaller(arguments, config, ranks):
    """The same options with small numbers. Returns arguments, configuration and the number of steps that follow."""
    config = dict(config or {})
    tensor, pipeline = degree(arguments, "--tensor-model-parallel-size"), degree(arguments, "--pipeline-model-parallel-size")
    sequence = degree(arguments, "--ds-sequence-parallel-size")
    data = ranks // (tensor * pipeline * sequence)
    micro = 2
    batch = micro * data * config.get("gradient_accumulation_steps", 2)
    heads = max(4, 2 * tensor * sequence)
    groups = max(2, tensor * sequence)
    grouped = value_of(arguments, "--num-key-value-heads") != value_of(arguments, "--num-attention-heads")
    changes = {"--num-layers": max(2, pipeline), "--hidden-size": 16 * heads, "--ffn-hidden-size": 32 * heads,
               "--num-attention-heads": heads, "--num-key-value-heads": groups if grouped else heads,
               "--num-query-groups": groups, "--lr-warmup-samples": 2, "--lr-decay-samples": 3 * batch,
               "--seq-length": SEQUENCE, "--max-position-embeddings": SEQUENCE, "--micro-batch-size": micro,
               "--global-batch-size": batch, "--train-iters": NUM_STEPS, "--log-interval": 1,
               "--eval-iters": min(2, value_of(arguments, "--eval-iters") or 0),
               "--lr-warmup-iters": 1}
    count = NUM_STEPS
    if "--rampup-batch-size" in arguments:
        at = arguments.index("--rampup-batch-size")
        least = micro * data
        arguments = arguments[:at + 1] + [str(least), str(least), str(2 * least)] + arguments[at + 4:]
        changes["--train-samples"], count = 6 * least, None  # steps by the rule of the ramp
    else:
        changes["--train-samples"] = NUM_STEPS * batch
    config.update({key: value for key, value in (("train_batch_size", batch), ("train_micro_batch_size_per_gpu", micro))
                   if key in config})
    return replace(arguments, changes), config, count


def first_scale(arguments, config):
    """Steps so few would all be spent on finding the scale of fp16, where nothing is said of it."""
    return 4096 if "--fp16" in arguments and "fp16" not in config and "--initial-loss-scale" not in arguments else None


def run_script(program, script, data, folder):
    arguments, config, count = smaller(script["arguments"], script["deepspeed"], script["ranks"])
    (folder / "ds_config.json").write_text(json.dumps(config))
    arguments = [str(folder / "ds_config.json") if word == "DEEPSPEED_CONFIG" else word for word in arguments]
    run = program("pretrain_gpt", *program.device, *local_paths(arguments, data, folder),
                  *flags(ranks_as_threads=script["ranks"], initial_loss_scale=first_scale(arguments, config)))
    lines = run.iterations()
    assert sorted(lines) == list(range(1, len(lines) + 1)) and (count is None or len(lines) == count), sorted(lines)
    trained = [float(f["lm loss"]) for f in lines.values() if "lm loss" in f]
    skipped = [f for f in lines.values() if f["number of skipped iterations"].strip() == "1"]
    assert len(lines) >= NUM_STEPS and len(trained) + len(skipped) == len(lines), lines
    assert "--save" not in arguments or steps(folder / "save") == [len(lines)], steps(folder / "save")
    final = [line for line in run.evaluations() if "draw from validation set" in line]
    assert final or value_of(script["arguments"], "--eval-iters") == 0, "no validation at the end"
    return f"{script['ranks']} ranks, {len(lines)} steps, losses {', '.join(f'{loss:.3f}' for loss in trained)}, {len(skipped)} skipped"


def run_readme(program, script, data, folder, device, count):
    """345M parameters, fp16 with recomputation; the exit is the one thing that is added."""
    arguments = local_paths(script["arguments"], data, folder)
    if device == "cpu":
        arguments = replace(arguments, {"--num-layers": 2})
    run = program("pretrain_gpt", *program.device, *arguments, *flags(exit_interval=count), expected=75, timeout=3600)
    assert f"[exiting program at iteration {count}]" in run.out, run.out[-1500:]
    assert steps(folder / "save") == [count], steps(folder / "save")
    return f"{count} steps"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--readme-steps", type=int, default=None)
    a = parser.parse_args()
    if not SHARED_DATA.is_dir() and not os.environ.get("BLOOMERY_REQUIRE_DATA"):
        sys.exit(print(f"left out: {SHARED_DATA}, which has the tokenizers, is not here"))
    program = Program(a.program, a.device)
    readme_steps = a.readme_steps or (20 if a.device == "cuda" else 2)
    failures, passed = 0, set()
    with tempfile.TemporaryDirectory() as folder:
        data = Data(program, pathlib.Path(folder))
        for script in accepted_scripts():
            if a.only not in script["name"] or (a.seeds and script["name"] not in SEEDS):
                continue
            begin, place = time.time(), pathlib.Path(folder) / re.sub(r"\W", "_", script["name"])
            place.mkdir()
            try:
                if script["name"] == ONE_GPU:
                    what = run_readme(program, script, data, place, a.device, readme_steps)
                else:
                    what = run_script(program, script, data, place)
                passed.add(script["name"])
                print(f"{script['name']}: {what} ({time.time() - begin:.0f} s)", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{script['name']}: FAILED: {error}", flush=True)
    print(f"{len(passed)} command lines ran, {len(passed & set(TEN))} of the ten that are named")
    sys.exit(f"{failures} failed" if failures else 0)


main()
