#!/usr/bin/env python3
"""Command lines of Megatron-DeepSpeed as they stand in its scripts and its README, run on a corpus of ours.

    build/oracle/bin/python tests/long/scripts.py BLOOMERY [--device cuda] [--only NAME] [--readme-steps 2]

Changed are program name, paths and sizes: as many narrow layers and heads as the parallel degrees need, short sequences, three
steps of a small batch. Tensor, pipeline and sequence degrees stay, each rank a thread; experts are divided among EXPERT_RANKS,
and a teacher is trained first where a script has one. docs/megatron.md says which are accepted; all of those run here, among
them TEN. The README's command for 345M parameters on one GPU keeps everything
but, on a CPU, the number of layers, and stops after a few of its 500,000 iterations."""
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
NUM_STEPS, SEQUENCE, EXPERT_RANKS = 3, 64, 8


def read_scripts(name):
    return json.loads((ROOT / "tests/golden" / name).read_text())


def accepted_scripts():
    page = (ROOT / "docs/megatron.md").read_text()
    accepted = {name: int(ranks or 1) for name, ranks in re.findall(r"^\| (.*) \| accepted(?:, (\d+) ranks)? \|$", page, re.M)}
    accepted[DISTRIBUTED] *= 2
    named = {*TEN, DISTRIBUTED, ONE_GPU}
    assert named <= set(accepted), f"no longer accepted: {sorted(named - set(accepted))}"
    scripts = read_scripts("readme_commands.json") + read_scripts("megatron_scripts.json")
    return [{**script, "ranks": accepted[script["name"]]} for script in scripts if script["name"] in accepted]


class Data:
    """A corpus for each of the tokenizers of the scripts."""

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
        self.words, words = SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt", folder / "my-bert"
        program("preprocess_data", *flags(input=text, output_prefix=words, vocab=self.words, split_sentences=True,
                                          tokenizer_type="BertWordPieceLowerCase"))
        self.sentences = folder / "my-bert_text_sentence"
        self.program, self.folder, self.analyses = program, folder, {}
        self.gpt2_corpus, self.llama_corpus = folder / "my-gpt2_text_document", folder / "llama_text_document"


    def analysis(self, masked, split):
        """The folder of what `data analyze` finds of a corpus, once for each split."""
        if (masked, split) not in self.analyses:
            save = self.analyses[masked, split] = self.folder / f"analysis{len(self.analyses)}"
            kind = flags(analyzing_data_type="BERT", vocab_file=self.words, tokenizer_type="BertWordPieceLowerCase",
                         data_path=self.sentences) if masked else flags(
                analyzing_data_type="GPT", vocab_file=self.vocab, merge_file=self.merges, tokenizer_type="GPT2BPETokenizer",
                data_path=self.gpt2_corpus)
            for metric in ["total_vocab_freq", "vocab_rarity"] + ["seqlen", "seqlen_vocab_rarity"] * masked:
                for task in "map", "reduce":
                    self.program("analyze_data", *kind, *flags(analyzing_task=task, analyzing_metric=metric, seq_length=SEQUENCE,
                                                               split=split, save=save))
        return self.analyses[masked, split]


def replace(arguments, changes):
    """Values behind flags that are there."""
    result = list(arguments)
    for flag, value in changes.items():
        for i, word in enumerate(arguments):
            if word == flag:
                result[i + 1] = str(value)
    return result


def local_paths(arguments, data, folder, masked):
    sentencepiece = "--tokenizer-model" in arguments
    corpus = str(data.sentences if masked else data.llama_corpus if sentencepiece else data.gpt2_corpus)
    first, end = values_of(arguments, "--data-path")
    paths = [word if re.fullmatch(r"[\d.]+", word) else corpus for word in arguments[first:end]]  # weights stay
    return replace(arguments[:first] + paths + arguments[end:], {
        "--vocab-file": data.words if masked else data.vocab, "--merge-file": data.merges, "--tokenizer-model": data.llama, "--save": folder / "save",
        "--load": folder / "save", "--tensorboard-dir": folder / "events", "--bert-load": folder / "bert",
        "--titles-data-path": data.sentences})  # of which each document gets one


def values_of(arguments, flag):
    """Where the values behind a flag begin and end."""
    first = arguments.index(flag) + 1
    return first, next((i for i in range(first, len(arguments)) if arguments[i].startswith("--")), len(arguments))


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
    drops = config.get("data_efficiency", {}).get("data_routing", {}).get("enabled", False)
    changes = {"--num-layers": max(4 if drops else 2, pipeline), "--num-layers-teacher": 4, "--hidden-size-teacher": 16 * heads,
               "--num-attention-heads-teacher": heads, "--moe-expert-parallel-size": data, "--kv-channels": 16,
               "--encoder-seq-length": SEQUENCE, "--decoder-seq-length": SEQUENCE // 2, "--hidden-size": 16 * heads,
               "--ffn-hidden-size": 32 * heads, "--num-attention-heads": heads,
               "--num-key-value-heads": groups if grouped else heads, "--num-query-groups": groups, "--lr-warmup-samples": 2, "--lr-decay-samples": 3 * batch,
               "--seq-length": SEQUENCE, "--max-position-embeddings": SEQUENCE, "--micro-batch-size": micro,
               "--global-batch-size": batch, "--train-iters": NUM_STEPS, "--log-interval": 1,
               "--eval-iters": min(2, value_of(arguments, "--eval-iters") or 0),
               "--lr-warmup-iters": 1, "--ds-sequence-parallel-fpdt-chunk-size": SEQUENCE // 4}
    count = NUM_STEPS
    if "--rampup-batch-size" in arguments:
        at = arguments.index("--rampup-batch-size")
        least = micro * data
        arguments = arguments[:at + 1] + [str(least), str(least), str(2 * least)] + arguments[at + 4:]
        changes["--train-samples"], count = 6 * least, None  # steps by the rule of the ramp
    else:
        changes["--train-samples"] = NUM_STEPS * batch
    interval = value_of(arguments, "--expert-interval") or 2
    for flag, layers in (("--num-experts", "--num-layers"), ("--num-experts-teacher", "--num-layers-teacher")):
        if flag in arguments:  # as many numbers as layers with experts are left, or one for all
            first, end = values_of(arguments, flag)
            left = max(1, changes[layers] // interval)
            arguments = arguments[:first] + arguments[end - min(left, end - first):end] + arguments[end:]
    config.update({key: value for key, value in (("train_batch_size", batch), ("train_micro_batch_size_per_gpu", micro))
                   if key in config})
    return replace(arguments, changes), config, count


def small_curricula(config, layers, analysis, folder):
    """Schedules of as few steps as are taken, and the files of the data at hand."""
    config = json.loads(json.dumps(config))
    small = {"total_curriculum_step": 2, "difficulty_step": 8}
    if (lengths := config.get("curriculum_learning", {})).get("enabled"):
        lengths.update(min_difficulty=16, max_difficulty=SEQUENCE)
        lengths["schedule_config"].update(small)
    efficiency = config.get("data_efficiency", {})
    ltd = efficiency.get("data_routing", {}).get("random_ltd", {})
    if ltd.get("enabled"):
        ltd.update(total_layer_num=layers, random_ltd_layer_num=layers - 2, random_ltd_layer_id=list(range(1, layers - 1)))
        ltd["random_ltd_schedule"].update(min_value=16, max_value=SEQUENCE,
                                          schedule_config={"require_steps": 2, "seq_per_step": 8})
    chosen = efficiency.get("data_sampling", {}).get("curriculum_learning", {})
    if chosen.get("enabled"):
        chosen["data_cluster_path"] = str(folder / "clusters")
        for name, metric in chosen["curriculum_metrics"].items():
            metric["schedule_config"].update(small)
            if metric["clustering_type"] == "schedule_based":
                metric["schedule_config"]["difficulty_step"] = 1
                measured = pathlib.Path(metric["index_to_metric_path"]).name.removesuffix("_index_to_metric")
                for key in "index_to_sample_path", "index_to_metric_path":
                    metric[key] = str(analysis() / measured / pathlib.Path(metric[key]).name)
            if metric["difficulty_type"] == "value":
                metric.update(min_difficulty=16, max_difficulty=SEQUENCE)
    return config


def small_compression(config):
    """Grids from the first steps on, of groups that divide small matrices."""
    config = json.loads(json.dumps(config))
    for kind in "weight_quantization", "activation_quantization":
        if (found := config.get("compression_training", {}).get(kind)) is not None:
            found["shared_parameters"]["schedule_offset"] = 1
            if "quantize_groups" in found["shared_parameters"]:
                found["shared_parameters"]["quantize_groups"] = 16
            for group in found["different_groups"].values():
                if "quantization_period" in group["params"]:
                    group["params"]["quantization_period"] = 1
    return config


def first_scale(arguments, config):
    """Steps so few would all be spent on finding the scale of fp16, where nothing is said of it."""
    return 4096 if "--fp16" in arguments and "fp16" not in config and "--initial-loss-scale" not in arguments else None


def teachers(arguments, save):
    """The arguments of a run that makes the teacher."""
    result = list(arguments)
    for flag in ("--num-layers", "--num-experts"):
        if flag + "-teacher" in result:
            first, end = values_of(result, flag + "-teacher")
            own, own_end = values_of(result, flag)
            result[own:own_end] = result[first:end]
    for flag in ("--load-teacher", "--num-layers-teacher", "--num-experts-teacher", "--hidden-size-teacher",
                 "--num-attention-heads-teacher", "--load"):
        if flag in result:
            first, end = values_of(result, flag)
            del result[first - 1:end]
    return replace([word for word in result if word not in ("--kd", "--mos")], {"--save": save})


def run_script(program, script, data, folder):
    if (value_of(script["arguments"], "--num-experts") or 1) > 1:
        script = {**script, "ranks": script["ranks"] * EXPERT_RANKS}
    arguments, config, count = smaller(script["arguments"], script["deepspeed"], script["ranks"])
    name = script.get("program", "pretrain_gpt")
    split = arguments[arguments.index("--split") + 1] if "--split" in arguments else None
    config = small_curricula(config, value_of(arguments, "--num-layers"), lambda: data.analysis(name != "pretrain_gpt", split), folder)
    (folder / "ds_config.json").write_text(json.dumps(small_compression(config)))
    arguments = [str(folder / "ds_config.json") if word == "DEEPSPEED_CONFIG" else word for word in arguments]
    arguments = local_paths(arguments, data, folder, name != "pretrain_gpt")
    more = flags(ranks_as_threads=script["ranks"], initial_loss_scale=first_scale(arguments, config))
    if "--bert-load" in arguments:
        bert = replace(arguments, {"--save": folder / "bert", "--load": folder / "bert"})
        program("pretrain_bert", *program.device, *bert, *flags(initial_loss_scale=4096))
    if "--load-teacher" in arguments:
        program(name, *program.device, *teachers(arguments, folder / "teacher"), *more)
        arguments = replace(arguments, {"--load-teacher": folder / "teacher"})
    run = program(name, *program.device, *arguments, *more)
    lines = run.iterations()
    assert sorted(lines) == list(range(1, len(lines) + 1)) and (count is None or len(lines) == count), sorted(lines)
    taught = "--kd" in arguments or "--mos" in arguments
    assert not taught or all(float(f["kd loss" if "--kd" in arguments else "mos loss"]) > 0 for f in lines.values()), lines
    trained = [float(f[loss]) for f in lines.values() for loss in ("lm loss", "loss") if loss in f]
    skipped = [f for f in lines.values() if f["number of skipped iterations"].strip() == "1"]
    assert len(lines) >= NUM_STEPS and len(trained) + len(skipped) == len(lines), lines
    assert "--save" not in arguments or steps(folder / "save") == [len(lines)], steps(folder / "save")
    final = [line for line in run.evaluations() if "draw from validation set" in line]
    assert final or value_of(script["arguments"], "--eval-iters") == 0, "no validation at the end"
    return f"{script['ranks']} ranks, {len(lines)} steps, losses {', '.join(f'{loss:.3f}' for loss in trained)}, {len(skipped)} skipped"


def run_readme(program, script, data, folder, device, count):
    """345M parameters, fp16 with recomputation; the exit is the one thing that is added."""
    arguments = local_paths(script["arguments"], data, folder, False)
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
            if a.only not in script["name"]:
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
