"""Runs of `bloomery pretrain` for the tests beside this file: a corpus, a command line, and what a run printed and wrote."""
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED_DATA = ROOT.parent / "shared" / "data"

# Numbers that depend on the clock; all others are the same in every run.
CLOCK = {"time", "iteration_ms", "samples_per_second", "tokens_per_second", "tokens_per_gpu_per_second", "tflops",
         "model_tflops", "reserved_bytes", "allocated_bytes"}
ITERATION = re.compile(r"^ iteration +(\d+)/ +(\d+) \|")
VALIDATION = re.compile(r"^ validation loss at iteration (\d+)")


@dataclasses.dataclass
class Run:
    code: int
    out: str
    errors: str

    @property
    def text(self):
        return self.out + self.errors

    def iterations(self):
        """Iteration -> the fields of its line, without those of the clock."""
        found = {}
        for line in self.out.splitlines():
            if match := ITERATION.match(line):
                fields = dict(part.strip().rsplit(": ", 1) for part in line.split("|")[1:-1])
                for name in [n for n in fields if re.match("elapsed|samples per|tokens per|TFLOPs|throughput", n)]:
                    del fields[name]
                found[int(match[1])] = fields
        return found

    def evaluations(self):
        return [line for line in self.out.splitlines() if VALIDATION.match(line)]

    def loaded_iteration(self):
        match = re.search(r"successfully loaded checkpoint from .* at iteration (\d+)", self.out)
        return int(match[1]) if match else None


class Program:
    """The bloomery binary with options that all runs of a test share (device, threads)."""

    def __init__(self, path, device="cpu", threads=0):
        self.path = str(pathlib.Path(path).resolve())
        self.device = ["--device", device] + (["--num-threads", str(threads)] if threads else [])

    def __call__(self, *arguments, expected=0, timeout=900, **options):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **options)
        run = Run(done.returncode, done.stdout, done.stderr)
        codes = expected if isinstance(expected, (list, tuple)) else [expected]
        assert run.code in codes, f"exit code {run.code} instead of {expected} of {words(arguments)}\n{run.text[-3000:]}"
        return run

    def pretrain(self, *arguments, **options):
        return self("pretrain", *self.device, *arguments, **options)

    def start(self, *arguments, output=subprocess.PIPE):
        """The process of a training run, with both outputs in one pipe or file."""
        return subprocess.Popen([self.path, "pretrain", *self.device, *map(str, arguments)], text=True, bufsize=1,
                                stdout=output, stderr=subprocess.STDOUT,
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # also under nohup


def words(arguments):
    return " ".join(str(argument) for argument in arguments)


def flags(**options):
    """micro_batch_size=4 becomes --micro-batch-size 4; True is a flag alone, False and None are left out, a list stands
    behind its name."""
    result = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        result.append("--" + name.replace("_", "-"))
        if isinstance(value, (list, tuple)):
            result += [str(v) for v in value]
        elif value is not True:
            result.append(str(value))
    return result


@dataclasses.dataclass
class Corpus:
    prefix: pathlib.Path
    vocab_file: pathlib.Path
    merge_file: pathlib.Path

    def flags(self):
        return flags(data_path=self.prefix, vocab_file=self.vocab_file, merge_file=self.merge_file,
                     tokenizer_type="GPT2BPETokenizer")


def make_corpus(program, folder, text, vocabulary):
    """Tokenizer and corpus of a JSONL file."""
    folder = pathlib.Path(folder)
    program("tokenizer", "train", *flags(input=text, output=folder / "tokenizer", vocab_size=vocabulary))
    files = dict(vocab_file=folder / "tokenizer/vocab.json", merge_file=folder / "tokenizer/merges.txt")
    program("preprocess", *flags(input=text, output_prefix=folder / "corpus", tokenizer_type="GPT2BPETokenizer",
                                 append_eod=True, **files))
    return Corpus(folder / "corpus_text_document", **files)


def make_stories(program, folder, count=3000, vocabulary=512):
    text = pathlib.Path(folder) / "stories.jsonl"
    program("data", "stories", *flags(output=text, count=count))
    return make_corpus(program, folder, text, vocabulary)


def tiny(corpus, **changes):
    """A model that makes hundreds of steps in a second, with dropout and accumulation."""
    options = dict(num_layers=2, hidden_size=64, num_attention_heads=4, seq_length=32, max_position_embeddings=32,
                   micro_batch_size=2, global_batch_size=4, train_iters=12, lr=1e-2, min_lr=1e-4, lr_decay_style="cosine",
                   lr_warmup_fraction=0.1, split="90,9,1", log_interval=1, eval_interval=4, eval_iters=2, save_interval=4)
    options.update(changes)
    return corpus.flags() + flags(**options)


def metrics(folder):
    """What was measured, by metrics.jsonl, without the numbers of the clock."""
    rows = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in CLOCK} for row in rows
            if row["kind"] in ("train", "validation", "test")]


def steps(folder):
    """Committed checkpoints by their names alone."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(match[1]) for name in names if (match := re.fullmatch(r"step-(\d+)", name)))


def expect_equal(what, ours, reference):
    if ours == reference:
        return
    pairs = [(a, b) for a, b in zip(ours, reference) if a != b] if isinstance(ours, list) else [(ours, reference)]
    first = "\n  ".join(map(str, pairs[0])) if pairs else "the shorter is a part of the longer"
    sizes = f" ({len(ours)} and {len(reference)})" if hasattr(ours, "__len__") else ""
    raise AssertionError(f"{what}{sizes}: the first difference is\n  {first}")


def expect_same_checkpoint(program, first, second):
    run = program("checkpoint", "diff", first, second, expected=[0, 1])
    assert run.code == 0, f"{first} and {second} differ:\n{run.text[-2000:]}"


def expect_whole_run(program, save, whole):
    expect_same_checkpoint(program, save, whole)
    expect_equal("checkpoints kept", steps(save), steps(whole))
    expect_equal("metrics.jsonl", metrics(save), metrics(whole))
    assert not [name for name in os.listdir(save) if "tmp" in name], os.listdir(save)


def is_moment(names, moment):
    """By the names in the folder: what is being written comes after the newest step, what is being removed before it.
    Step 0 is what a run writes at its start to find out whether it can save."""
    newest = max((int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name)), default=-1)
    unfinished = [int(found[1]) for name in names if (found := re.match(r"step-([1-9]\d*)\.tmp-", name))]
    return {"training": "metrics.jsonl" in names,
            "saving": any(step > newest for step in unfinished),
            "pruning": any(step < newest for step in unfinished)}[moment]


def leftovers(folder):
    """What an earlier run left unfinished."""
    return {name for name in os.listdir(folder) if ".tmp-" in name} if folder.is_dir() else set()


def wait_for(process, folder, moment, delay, ignored=frozenset()):
    """Until the names in the folder show that moment, or the process has ended; then so many seconds more."""
    while process.poll() is None:
        if is_moment(set(os.listdir(folder)) - ignored if folder.is_dir() else [], moment):
            time.sleep(delay)
            return
