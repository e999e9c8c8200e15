#!/usr/bin/env python3
"""The commands of five documents that describe Megatron-DeepSpeed to its users, run as they stand in the code blocks.

    python3 -B tests/long/seeds.py BLOOMERY [--only NAME]

Each document's blocks are one script, run with Bloomery's shims in front of PATH; schedulers, containers, downloads and other
programs of Python are answered by stand-ins (stand_ins.py). Changed are places that a reader fills in, folders of the authors'
machines, and, between the shims and the program, the sizes of models and runs."""
import argparse
import html
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from reduced import SIZES
from stand_ins import calls_in, environment, recorded_shims, write_program, write_stand_ins
from training import ROOT, SHARED_DATA, Program, flags, steps

DOCUMENTS = ROOT.parent / "shared/seeds"
GPT2 = SHARED_DATA / "tokenizers/gpt2"


def blocks(document, language):
    """The texts of fenced code of a language, or of <pre>, without prompts."""
    text = document.read_text()
    if language == "pre":
        return [html.unescape(re.sub(r"</?a[^>]*>", "", block)) for block in re.findall(r"<pre>\n(.*?)</pre>", text, re.S)]
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.S | re.M)
    return [re.sub(rf"^{indent}", "", block, flags=re.M) for indent, block in found]


class Sandbox:
    """A folder with stand-ins, shims whose calls are recorded, and downloads."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        write_stand_ins(folder / "programs")
        for name in ("downloads", "clones", "records", "work"):
            (folder / name).mkdir()
        self.work = folder / "work"
        for name in ("gpt2-vocab.json", "gpt2-merges.txt"):
            (folder / "downloads" / name).symlink_to(GPT2 / name)
        (folder / "downloads/oscar-1GB.jsonl.xz").symlink_to(SHARED_DATA / "corpora/sotu/sotu.jsonl.xz")
        reducer = folder / "reducer"
        write_program(reducer, f'exec {sys.executable} -B {ROOT}/tests/long/reduced.py {program.path} "$@"\n')
        recorded_shims(program, folder / "shims", folder / "records", reducer)

    def shell(self, text, **variables):
        script = self.folder / "script.sh"
        script.write_text(text)
        done = subprocess.run(["bash", str(script)], cwd=self.work, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900,
                              env=environment(self.folder / "shims", self.folder / "programs", self.folder / "records",
                                              self.folder / "downloads", CLONES=str(self.folder / "clones"), **variables))
        assert "not found" not in done.stderr and "No such file" not in done.stderr, done.stderr
        return done

    def run(self, text, iterations=3):
        """Runs the text; returns the calls of shims, all of which are expected to succeed."""
        before = len(calls_in(self.folder / "records"))
        self.shell(text, REDUCED_ITERATIONS=str(iterations))
        calls = calls_in(self.folder / "records")[before:]
        for call in calls:
            assert call.code == 0, f"{call.name} {' '.join(call.arguments)[:300]}: code {call.code}\n{call.errors[-2000:]}"
        return calls


def trained(call, count):
    assert len(re.findall(r"^ iteration +\d+/", call.out + call.errors, re.M)) == count, call.out + call.errors


def readme(box):
    """Preprocessing, training on one GPU and on eight, merging, generating, perplexity of WikiText-103."""
    text = blocks(DOCUMENTS / "004_fb8785fd6e2b0741.txt", "pre")
    shell = [block for block in text if re.search(r"^(\S+ )?python ", block, re.M)]
    assert len(shell) == 6, len(shell)
    (box.work / "my-corpus.json").write_bytes(lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()))
    lines = (SHARED_DATA / "corpora/wikitext-103/wiki.valid.tokens").read_text().splitlines(keepends=True)
    (box.work / "wikitext.txt").write_text("".join(lines[:60]))
    for name in ("gpt2-vocab.json", "gpt2-merges.txt"):
        (box.work / name).symlink_to(GPT2 / name)
    names = {"MODEL_ARGS": "$GPT_ARGS"}

    def filled(block):
        block = re.sub(r"^(\w+)=<same as above>$", lambda m: f'{m[1]}="{names.get(m[1], "$" + m[1])}"', block, flags=re.M)
        block = re.sub(r"^(\w+)=<same as those in .*>$", r'\1="$\1"', block, flags=re.M)
        block = re.sub(r"=<[^>]*>\.txt", "=wikitext.txt", block)
        return block.replace("pretrain_<model>.py", "pretrain_gpt.py")

    preprocess, alone, distributed, merge, generate, task = map(filled, shell)
    box.run(preprocess)
    assert (box.work / "my-gpt2_text_document.bin").exists()
    trained(box.run(alone)[-1], 3)
    assert steps(box.work / "checkpoints/gpt2_345m")[-1] == 3
    calls = box.run(alone.rsplit("python", 1)[0] + distributed, iterations=5)
    trained(calls[-1], 2)  # it goes on from the three steps of one rank
    assert "rank 0 of 8" in calls[-1].errors, calls[-1].errors[:2000]
    make_bert(box)
    box.run(merge.replace("--load $CHECKPOINT_PATH\n", "--load $CHECKPOINT_PATH \\\n"))  # the text lacks this backslash
    assert list((box.work / "checkpoints/bert_345m/merged").glob("iter_*/mp_rank_*")), "no merged model"
    calls = box.run(alone.rsplit("python", 1)[0] + generate)
    assert len((box.work / "samples.json").read_text().splitlines()) == 2
    calls = box.run(task)
    assert re.search(r"ppl|perplexity", calls[-1].out), calls[-1].out
    return "preprocessed, trained on 1 and 8 ranks, merged, generated, evaluated"


def make_bert(box):
    """A BERT in Megatron's files of two tensor ranks, whose training the text does not show."""
    vocab, place = SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt", box.work
    (place / "bert-vocab.txt").symlink_to(vocab)
    box.program("preprocess_data", *flags(input=place / "my-corpus.json", output_prefix=place / "my-bert", vocab=vocab,
                                          split_sentences=True, tokenizer_type="BertWordPieceLowerCase"))
    sizes = {name.removeprefix("--").replace("-", "_"): SIZES[name] for name in
             ("--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length", "--max-position-embeddings")}
    box.program("pretrain_bert", *flags(**sizes, micro_batch_size=2, global_batch_size=4, lr=1e-3, train_iters=2, data_path=place / "my-bert_text_sentence",
                                        vocab_file=vocab, tokenizer_type="BertWordPieceLowerCase", save=place / "bert"))
    box.program("convert", *flags(input=place / "bert", output=place / "checkpoints/bert_345m", to="megatron", tensor=2))


def amd(box):
    """Preprocessing, the script of 125M parameters on eight GPUs, conversion to Hugging Face."""
    text = blocks(DOCUMENTS / "003_8adb0c63f34a44c7.txt", "sh")
    text = [block.removeprefix("%%sh\n").replace("/home/aac", "$home_dir") for block in text if block.startswith("%%sh")]
    assert len(text) == 3, len(text)
    tree = box.folder / "clones/Megatron-DeepSpeed"
    (tree / "dataset").mkdir(parents=True)
    (tree / "examples_deepspeed/rebase").mkdir(parents=True)
    (tree / "dataset/download_vocab.sh").write_text("wget http://host/gpt2-vocab.json\nwget http://host/gpt2-merges.txt\n")
    script = tree / "examples_deepspeed/rebase/ds_pretrain_gpt_125M_flashattn.sh"
    script.write_text(flashattn_script(tree))
    (box.folder / "clones/flash-attention").mkdir()
    home = f"home_dir={box.work}\n"
    calls = box.run(home + text[0].replace("home_dir=$PWD\n", ""))
    assert (box.work / "Megatron-DeepSpeed/dataset/my-gpt2_text_document.bin").exists(), [call.arguments for call in calls]
    trained(box.run(home + text[1] + "\nwait\n")[-1], 3)
    save = box.work / "Megatron-DeepSpeed/examples_deepspeed/rebase/output/checkpoint" / JOB
    assert steps(save)[-1] == 3, steps(save)
    convert = home + text[2].replace("/global_step8000 ", "/step-3 ").replace("/global_step2000 ", "/step-2 ")
    box.run(convert)
    for number in 8000, 2000:
        config = json.loads((save / f"HF/global_step{number}/config.json").read_text())
        assert config["model_type"] == "gpt2", config
    return "preprocessed, trained on 8 ranks, converted two checkpoints"


JOB = ("gpt_0.125B_tok300B_lr6.0e-4_min1.0e-6_w3000M_d300B_cosine_gbs256_mbs2_g8_z1_mp2_pp2_seed1234_rebase")


def flashattn_script(tree):
    """The script's command line as tests/golden has it, and what it does before: GPUs are counted, a JSON is written."""
    scripts = json.loads((ROOT / "tests/golden/megatron_scripts.json").read_text())
    script = next(script for script in scripts if script["name"] == "rebase/ds_pretrain_gpt_125M_flashattn.sh")
    values = {"--save": "$save", "--load": "$save", "--data-path": "../../dataset/my-gpt2_text_document", "--tensorboard-dir": "events",
              "--vocab-file": "../../dataset/gpt2-vocab.json", "--merge-file": "../../dataset/gpt2-merges.txt",
              "--deepspeed_config": "ds.json"}
    words = list(script["arguments"])
    for flag, value in values.items():
        words[words.index(flag) + 1] = value
    config = script["deepspeed"]
    return f"""num_gpus=$(($(ds_ssh nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)-2))
save=output/checkpoint/{JOB.replace("g8", "g${num_gpus}")}
mkdir -p $save
cat <<EOT > ds.json
{json.dumps(config)}
EOT
deepspeed --num_gpus $num_gpus `pwd`/../../pretrain_gpt.py {" ".join(words)} &>> log
"""


def aws(box):
    """Preprocessing and training by Slurm: 7.5 billion parameters, and Llama-2 of 70 billion."""
    text = [block for block in blocks(DOCUMENTS / "001_311eb6509fdf7595.txt", "bash")
            if re.search(r"sbatch|wget|docker build|enroot import -o megatron|export DATA_PATH=/fsx #", block)
            and not re.search(r"kubectl|aws ", block) and "[INFO]" not in block]
    assert len(text) == 8, text
    for name, script in sbatch_files().items():
        (box.work / name).write_text(script)
    (box.work / "llama2").mkdir()
    (box.work / "llama2/tokenizer.model").symlink_to(SHARED_DATA / "tokenizers/sentencepiece/llama2.model")
    starts = []
    for block in text:
        starts += [call for call in box.run(block.replace("/fsx", str(box.work))) if "preprocess" not in " ".join(call.arguments)]
    assert len(starts) == 2, [call.arguments for call in starts]
    for call, ranks in zip(starts, (8, 16)):
        trained(call, 3)
        assert f"rank 0 of {ranks}" in call.errors, call.errors[:2000]
    return "preprocessed twice, trained on 8 and 16 ranks"


def sbatch_files():
    """Job files that start what those of the sample start, with the command lines that tests/golden has."""
    scripts = {script["name"]: script["arguments"] for script in json.loads((ROOT / "tests/golden/readme_commands.json").read_text())}

    def preprocess(folder, tokenizer):
        return (f"#!/bin/bash\n#SBATCH --nodes=1\nsrun -l python3 tools/preprocess_data.py --input {folder}/oscar-1GB.jsonl --append-eod "
                f"--output-prefix {folder}/my-{folder} --workers 8 {tokenizer}\n")

    def train(name, folder, ranks, files):
        words = [files.get(word, word) for word in scripts[name]]
        return (f"#!/bin/bash\n#SBATCH --nodes=1\nsrun -l python -m torch.distributed.run --nproc_per_node {ranks} --nnodes 1 "
                f"/workspace/Megatron-LM/pretrain_gpt.py {' '.join(words)}\n")

    gpt2 = {"my-gpt2_text_document": "gpt2/my-gpt2_text_document", "gpt2-vocab.json": "gpt2/gpt2-vocab.json",
            "gpt2-merges.txt": "gpt2/gpt2-merges.txt"}
    llama = {"my-llama2_text_document": "llama2/my-llama2_text_document", "tokenizer.model": "llama2/tokenizer.model"}
    return {"1.data-preprocessing.sbatch": preprocess("gpt2", "--tokenizer-type GPT2BPETokenizer --vocab-file gpt2/gpt2-vocab.json "
                                                              "--merge-file gpt2/gpt2-merges.txt"),
            "2.distributed-training.sbatch": train("AWS sample, 7.5B", "gpt2", 8, gpt2),
            "3.data-preproc-llama2.sbatch": preprocess("llama2", "--tokenizer-type Llama2Tokenizer --tokenizer-model llama2/tokenizer.model"),
            "4.pre-train-llama2.sbatch": train("AWS sample, Llama-2 70B", "llama2", 16, llama)}


def alcf(box):
    """The model of 25 billion parameters by its key, as variables say."""
    text = "\n".join(blocks(DOCUMENTS / "002_6255cde86dc86572.txt", "bash"))
    tree = box.folder / "clones/Megatron-DeepSpeed/ALCF"
    tree.mkdir(parents=True)
    write_program(tree / "train-gpt3.sh", f'exec {box.program.path} alcf train-gpt3 "$@"\n')
    text = text.replace("python3 -m venv", "mkdir -p venvs/polaris/2023-10-04/bin; : > venvs/polaris/2023-10-04/bin/activate; python3 -m venv")
    done = box.shell(text, BLOOMERY_DRY_RUN="1", NGPU_PER_HOST="4", DATA_PATH=str(box.work / "my-gpt2_text_document"))
    assert re.search(r"num-layers \.+ 64 ", done.stdout) and re.search(r"ranks-as-threads \.+ 4 ", done.stdout), done.stdout + done.stderr
    return "planned 25 billion parameters on 4 ranks"


def container(box):
    """Nothing but other programs: Python packages, and a repository."""
    text = "\n".join(block for block in blocks(DOCUMENTS / "000_a834c5308b5e6883.txt", "") if "python3 -m" in block or "git clone" in block)
    assert text.count("python3 -m") == 3 and "git clone" in text, text
    text = text.replace("/opt", str(box.work)).replace("python3 -m venv llm", "mkdir -p llm/bin; : > llm/bin/activate; python3 -m venv llm")
    box.run(text.replace("git clone", "mkdir -p Megatron-DeepSpeed/megatron/data; git clone"))
    return "installed by other programs"


SEQUENCES = {"README": readme, "AWS": aws, "ALCF": alcf, "AMD": amd, "container": container}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    if not DOCUMENTS.is_dir() and not os.environ.get("BLOOMERY_REQUIRE_DATA"):
        sys.exit(print(f"left out: {DOCUMENTS} is not here"))
    failures = 0
    for name, sequence in SEQUENCES.items():
        if a.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name}: {sequence(Sandbox(Program(a.program), pathlib.Path(folder).resolve()))}", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{name}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
