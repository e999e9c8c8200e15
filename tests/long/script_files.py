#!/usr/bin/env python3
"""The shell scripts of Megatron-DeepSpeed's example trees, run as files with Bloomery's shims in front of PATH.

    python3 -B tests/long/script_files.py BLOOMERY [CHECKOUT] [--only NAME] [--selection COUNT] [--train] [--write]

CHECKOUT, or MEGATRON_DEEPSPEED in the environment, is Megatron-DeepSpeed's repository. The schedulers, the network and Python are answered by stand-ins. Paths of the
authors' machines lie in a folder of the test, and places that a user fills in (`<Specify path>`) are filled. Commands that
train make a dry run; the others are started and end at the first file that is missing. docs/scripts.md has a line for each
script; --write writes it. With --train those that find their data in the repository, by its own downloads, are also trained at
reduced size."""
import argparse
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from stand_ins import calls_in, environment, recorded_shims, write_program, write_stand_ins
from training import ROOT, SHARED_DATA, Program, flags

PAGE = ROOT / "docs/scripts.md"
BEGIN, END = "<!-- scripts: written by a test -->\n", "<!-- end of scripts -->\n"
COMMIT = "4efb479d"
TREES = ["examples", "examples_deepspeed"]
FOREIGN_ROOTS = re.compile(r"(?<![\w.}/])/(?=(blob|data|job|vc_data|vc_data_blob|workspace)/)")
PLACEHOLDER = re.compile(r"=\s*<[^>\n]*>[^\n]*(?:\n\s+\(e\.g\.[^\n]*)?")
# Scripts that name files from the root of the repository; the others start in their own folder.
AT_ROOT = re.compile(r"examples/(?!sc21/)|examples_deepspeed/(azure|universal_checkpointing|finetune_hf_llama)/|"
                     r"examples_deepspeed/(pretrain_llama2?_distributed|generate_text|run_deepspeed_example)\.sh")
# What a user types behind the name of the script.
ARGUMENTS = {
    "examples/detxoify_lm/annotations/preprocess.sh": ["text.jsonl", "toxic"],
    "examples/detxoify_lm/finetune_gpt_distributed-1.3b.sh": ["data", "tuned", "2e-5", "512", "78", "gpt"],
    "examples/detxoify_lm/generate-1.3b.sh": ["prompts.jsonl", "gpt"],
    "examples/detxoify_lm/self_generation/selfgenerate-1.3b-unconditional.sh": ["1000", "gpt", "1"],
    "examples_deepspeed/data_efficiency/bert/ds_analyze_bert_data_map.sh": ["0"],
    "examples_deepspeed/data_efficiency/gpt/ds_analyze_gpt_data_map.sh": ["0"],
    "examples_deepspeed/data_efficiency/bert/finetune_glue/ds_finetune_bert_glue.sh":
        ["localhost:0,1,2,3", "12345", "1234", "MNLI", "2e-5", "/blob/bert"],
    "examples_deepspeed/data_efficiency/bert/finetune_glue/ds_finetune_bert_glue_run.sh": ["localhost:0,1,2,3", "12345", "/blob/bert"],
    "examples_deepspeed/data_efficiency/bert/pretrain/ds_pretrain_bert_336M_base_script.sh": ["1e-4", "1049"],
    "examples_deepspeed/data_efficiency/gpt/pretrain/ds_pretrain_gpt_1.3B_dense_base_script.sh": ["2.0e-4", "300"],
    "examples_deepspeed/curriculum_learning/ds_pretrain_gpt2.sh":
        ["baseline", "baseline", "1558", "1.5e-4", "512", "1024", "1", "1234", "5000", "600000", "157286400000", "157286400000",
         "3000", "false", "0", "0"],
}
# Files that a script has beside it before it starts; the others download theirs.
GPT2_DATA = {"dataset/my-gpt2_text_document.bin": "BookCorpusDataset_text_document.bin",
             "dataset/my-gpt2_text_document.idx": "BookCorpusDataset_text_document.idx", "dataset/gpt2-vocab.json": "gpt2-vocab.json",
             "dataset/gpt2-merges.txt": "gpt2-merges.txt"}
LLAMA_DATA = {"tmp/data/bookcorpus_train_1m_text_sentence.bin": "llama_text_document.bin",
              "tmp/data/bookcorpus_train_1m_text_sentence.idx": "llama_text_document.idx", "tmp/tokenizer.model": "tokenizer.model"}
TRAINED = {
    "examples_deepspeed/rebase/ds_pretrain_gpt_125M.sh": {},
    "examples_deepspeed/rebase/ds_pretrain_gpt_125M_flashattn.sh": {},
    "examples_deepspeed/universal_checkpointing/megatron_gpt/run_fp16.sh": GPT2_DATA,
    "examples_deepspeed/universal_checkpointing/megatron_gpt/run_bf16.sh": GPT2_DATA,
    "examples_deepspeed/pretrain_llama_distributed.sh": LLAMA_DATA,
    "examples_deepspeed/pretrain_llama2_distributed.sh": LLAMA_DATA,
}
# What the scripts of sc21/run_*.sh read or submit: no starts of their own.
PARTS = {"examples/sc21/CONFIG.sh", "examples/sc21/SBATCH.sh", "examples/sc21/SRUN.sh"}
# Why a script does not start a command of Bloomery.
OTHER_PROGRAMS = {
    "tasks/eval_harness/evaluate.py": "starts LM evaluation harness inside Megatron; here `bloomery serve` answers lm_eval, and "
                                      "`bloomery evaluate` has perplexity and LAMBADA",
    "tasks/msdp/main.py": "starts the tasks of multi-stage dialogue prompting, which are not built",
    "examples/detxoify_lm/finetune_gpt.py": "starts `finetune_gpt.py`, whose blend of two corpora is not built; "
                                            "`pretrain_gpt --finetune --data-path WEIGHT CORPUS WEIGHT CORPUS` trains on both",
}
# Programs of Python that have nothing to do with Megatron run as they did.
UNTOUCHED = ("preprocessing.py", "tb_analysis_script.py")


def trees_of(repository, folder):
    """The example trees of the commit that the page is about, or the files as they lie there."""
    archive = subprocess.run(["git", "-C", str(repository), "archive", COMMIT, *TREES], capture_output=True)
    if archive.returncode != 0:
        return repository
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def fill(name, text, sandbox):
    """The script as a user has it who has read its comments."""
    text = FOREIGN_ROOTS.sub(f"{sandbox}/", text)
    text = PLACEHOLDER.sub("=filled_in", text)
    text = re.sub(r"<[A-Z][A-Z a-z./-]*>", "filled_in", text) if "#SBATCH" in text else text
    if name.endswith("_run.sh") and "/pretrain/" in name:  # "Uncomment one block to try"
        lines = text.split("\n")
        begin = next(i for i, line in enumerate(lines) if re.match(r"# \w+=", line))
        end = next(i for i in range(begin, len(lines)) if lines[i].startswith("###"))
        lines[begin:end] = [line.removeprefix("# ") for line in lines[begin:end]]
        text = "\n".join(lines)
    return text


def sandboxed(checkout, folder):
    for tree in TREES:
        shutil.copytree(checkout / tree, folder / tree)
    for path in folder.rglob("*.sh"):
        name = str(path.relative_to(folder))
        path.write_text(fill(name, path.read_text(), folder))
    for file in ("dataset", "tmp", "tmp/data", "job", "blob", "data"):
        (folder / file).mkdir(exist_ok=True)
    (folder / "prompts.jsonl").write_text("")


def dry_gpus(text):
    """As many GPUs as the script says that it has."""
    found = re.search(r"^\s*NUM_GPUS=(\d+)", text, re.M)
    return {"BLOOMERY_DRY_RUN_GPUS": found[1]} if found else {}


class Runner:
    def __init__(self, program, checkout, folder):
        self.program, self.checkout, self.folder, self.count = program, checkout, folder, 0
        write_stand_ins(folder / "programs")
        (folder / "hostfile").write_text("localhost slots=8\n")
        self.reduced = folder / "reduced"
        write_program(self.reduced, f'exec {sys.executable} -B {ROOT}/tests/long/reduced.py {program.path} "$@"\n')
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        if SHARED_DATA.is_dir():
            for name in ("gpt2-vocab.json", "gpt2-merges.txt"):
                (self.downloads / name).symlink_to(SHARED_DATA / "tokenizers/gpt2" / name)
            (self.downloads / "tokenizer.model").symlink_to(SHARED_DATA / "tokenizers/sentencepiece/llama2.model")
            (self.downloads / "bert-large-uncased-vocab.txt").symlink_to(SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt")

    def __call__(self, name, dry, place=None):
        self.count += 1
        here = self.folder / f"run{self.count}"
        sandbox, records = here / "tree", here / "records"
        records.mkdir(parents=True)
        sandboxed(self.checkout, sandbox)
        if place:
            place(sandbox)
        recorded_shims(self.program, here / "shims", records, self.reduced if place else None)
        cwd = sandbox if AT_ROOT.match(name) else (sandbox / name).parent
        variables = environment(here / "shims", self.folder / "programs", records, self.downloads,
                                REDUCED_ITERATIONS="3", DLTS_HOSTFILE=str(self.folder / "hostfile") if place else "", **({"BLOOMERY_DRY_RUN": "1", **dry_gpus((sandbox / name).read_text())} if dry else {}))
        arguments = [FOREIGN_ROOTS.sub(f"{sandbox}/", word) for word in ARGUMENTS.get(name, [])]
        start = "sbatch" if "#SBATCH" in (sandbox / name).read_text() else "bash"
        done = subprocess.run([start, str(sandbox / name), *arguments], cwd=cwd, env=variables, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=900)
        calls = [call for call in calls_in(records) if call.name not in ("ds_ssh", "ds_report")]
        noted = (records / "calls").read_text() if (records / "calls").exists() else ""
        shown = re.compile(re.escape(str(sandbox)) + "/?")
        for call in calls:
            call.out, call.errors = shown.sub("", call.out), shown.sub("", call.errors)
        shutil.rmtree(here)
        return calls, noted, done


def is_plan(call):
    return call.code == 0 and call.out.startswith("plan:")


def message(call):
    notes = ("dry run", "has no effect", "hostfile")
    lines = [line for line in call.errors.splitlines() if line.startswith(("bloomery: ", "  ")) and not any(note in line for note in notes)]
    text = " ".join(line.removeprefix("bloomery: ").strip() for line in lines)
    return text.split("; give a folder with a model")[0]


MISSING = re.compile(r"does not exist|cannot open|no such file|there is no|No such file|is not there|needs|has no model|without", re.I)


def ending(calls):
    """Of the first call that failed: whether a file of its authors is missing, and its message."""
    ended = [call for call in calls if call.code not in (0, None)]
    if not ended:
        return None
    text = message(ended[0])
    return ("ends at a missing file" if MISSING.search(text) else "refused"), text


def outcome(name, run):
    """A word for the kind of end, and a sentence."""
    if name in PARTS:
        return "runs", "as a part of `run_*.sh`"
    calls, noted, done = run(name, dry=True)
    others = [line for line in noted.splitlines() if line.split()[0] in ("python", "python3", "deepspeed", "torchrun")]
    plans = [call for call in calls if is_plan(call)]
    if failed := ending(calls):
        return failed
    if plans:
        ranks = re.search(r"ranks-as-threads \.+ (\d+)", plans[0].out)[1]
        return "runs", f"plan of {ranks} rank{'s' * (ranks != '1')}" + (f", {len(plans)} starts" if len(plans) > 1 else "")
    if any("this would start" in call.errors for call in calls):
        calls, noted, done = run(name, dry=False)
        return ending(calls) or ("runs", "to its end")
    if others:
        for script, why in OTHER_PROGRAMS.items():
            if any(script in line for line in others):
                return "not built", why
        assert all(any(script in line for script in UNTOUCHED) for line in others), others
        return "runs", f"`{next(script for script in UNTOUCHED if script in others[0])}` by Python, untouched"
    raise AssertionError(f"{name} starts nothing: {done.stdout}{done.stderr}")


def corpora(run):
    """What the scripts download or expect, made of the shared data, by name."""
    text, downloads = run.folder / "sotu.json", run.downloads
    if not text.exists():
        text.write_bytes(lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()))
        gpt2 = SHARED_DATA / "tokenizers/gpt2"
        run.program("preprocess_data", *flags(input=text, output_prefix=downloads / "BookCorpusDataset", append_eod=True,
                                              tokenizer_type="GPT2BPETokenizer", vocab_file=gpt2 / "gpt2-vocab.json",
                                              merge_file=gpt2 / "gpt2-merges.txt"))
        run.program("preprocess_data", *flags(input=text, output_prefix=downloads / "llama", append_eod=True,
                                              tokenizer_type="GPTSentencePieceTokenizer",
                                              tokenizer_model=SHARED_DATA / "tokenizers/sentencepiece/llama2.model"))
    return downloads


def train(name, run):
    """The file itself, with small numbers between its shims and the program."""
    downloads = corpora(run)

    def place(sandbox):
        for wanted, have in TRAINED[name].items():
            (sandbox / wanted).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(downloads / have, sandbox / wanted)

    calls, _, done = run(name, dry=False, place=place)
    assert done.returncode == 0 and calls and calls[-1].code == 0, f"{name}: {done.stderr[-1000:]}{calls and calls[-1].errors[-2000:]}"
    lines = re.findall(r"^ iteration +(\d+)/", calls[-1].out + calls[-1].errors, re.M)
    assert lines == ["1", "2", "3"], f"{name}: iterations {lines}: {calls[-1].errors[-2000:]}"
    return f"trained 3 iterations, {re.search(r'rank 0 of (.*), as', calls[-1].errors)[1]} ranks"


def table(found):
    """The lines of the page."""
    counts = [(kind, sum(1 for found_kind, _ in found.values() if found_kind == kind))
              for kind in ("runs", "ends at a missing file", "refused", "not built")]
    head = f"Of {len(found)} scripts " + ", ".join(f"{count} {kind}" for kind, count in counts) + ".\n\n"
    lines = [f"| {name} | {kind} | {text.replace('|', '/')} |" for name, (kind, text) in found.items()]
    return head + "| script | result | what happens |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"


def rows():
    """The lines of the page by script."""
    found = re.findall(r"^\| (examples.*?) \| (.*?) \| (.*) \|$", PAGE.read_text(), re.M)
    return {name: (kind, text) for name, kind, text in found}


def page_with(text):
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:begin] + text + page[end:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("checkout", nargs="?", default=os.environ.get("MEGATRON_DEEPSPEED"))
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--selection", type=int, default=None)
    parser.add_argument("--write", action="store_true")
    a = parser.parse_args()
    if not a.checkout:
        print("left out: MEGATRON_DEEPSPEED names no checkout of Megatron-DeepSpeed")
        sys.exit(77)  # ctest: skipped
    program = Program(a.program)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        checkout = trees_of(pathlib.Path(a.checkout).resolve(), pathlib.Path(folder) / "checkout")
        scripts = sorted(str(path.relative_to(checkout)) for tree in TREES for path in (checkout / tree).rglob("*.sh"))
        scripts = scripts[::len(scripts) // a.selection] if a.selection else scripts
        run = Runner(program, checkout, pathlib.Path(folder).resolve())
        for name in scripts:
            if a.only in name:
                found[name] = outcome(name, run)
                print(name, *found[name], sep=" | ", flush=True)
                if a.train and name in TRAINED:
                    print(name, train(name, run), sep=" | ", flush=True)
    if a.write:  # what did not run stays
        PAGE.write_text(page_with(table(dict(sorted({**rows(), **found}.items())))))
        return
    page = PAGE.read_text()
    if not a.only and a.selection is None:
        assert page == page_with(table(found)), "docs/scripts.md is out of date: --write writes it"
    else:
        for name, (kind, text) in found.items():
            assert f"| {name} | {kind} | {text.replace('|', '/')} |\n" in page, f"docs/scripts.md is out of date about {name}: {kind}, {text}"


main()
