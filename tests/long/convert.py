#!/usr/bin/env python3
"""Models of transformers converted and evaluated by us, beside transformers itself.

    build/oracle/bin/python tests/long/convert.py BLOOMERY [SHARED_DATA [CASE...]]

Random GPT-2s of several sizes, some with weights spread like those of trained ones, are imported: logits (1e-4),
perplexity on WikiText-2 (4 digits), WikiText-103's and LAMBADA's numbers as Megatron defines them, all computed here with
transformers. The export of what was imported, and of a model that we trained, loads in transformers with the same logits."""
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

VOCABULARY = 50257
SIZES = {  # layers, width, heads, positions, whether spread like trained weights, characters of WikiText-2
    "small": (2, 48, 3, 128, False, None),
    "spread": (3, 64, 4, 256, True, 60_000),
    "wide": (2, 256, 8, 512, True, 60_000),
    "124M": (12, 768, 12, 1024, True, 12_000),
}


def run(bloomery, *arguments, code=0):
    done = subprocess.run([bloomery, *map(str, arguments)], text=True, capture_output=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def make_model(name, folder, vocabulary_files):
    layers, width, heads, positions, spread, _ = SIZES[name]
    torch.manual_seed(len(name))
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=positions, n_embd=width, n_layer=layers, n_head=heads))
    if spread:  # heavy-tailed weights, gains off one, biases off zero, rows of different length
        with torch.no_grad():
            for parameter in model.parameters():
                tail = torch.distributions.StudentT(4.0).sample(parameter.shape)
                parameter.mul_(1.5).add_(tail, alpha=0.05 if parameter.ndim == 1 else 0.02)
            model.transformer.wte.weight.mul_(torch.linspace(0.5, 2.5, VOCABULARY)[:, None])
    model.eval().save_pretrained(folder)
    for target, source in zip(("vocab.json", "merges.txt"), vocabulary_files):
        shutil.copyfile(source, folder / target)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    return model


@torch.no_grad()
def token_losses(model, tokens):  # of all but the first
    logits = model(torch.tensor([tokens[:-1]])).logits[0]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(tokens[1:]), reduction="none").double()


def perplexity(model, tokens, seq_length):
    losses = [token_losses(model, tokens[i:i + seq_length + 1]).sum().item() for i in range(0, len(tokens) - 1, seq_length)]
    return sum(losses)


def detokenize(text):
    text = text.replace("s '", "s'")
    for sign in "-,.":
        text = text.replace(f" @{sign}@ ", sign)
    for sign in ":;.!?,":
        text = text.replace(f" {sign} ", f"{sign} ")
    for opening, closing in ("()", "[]", "{}", '""', "''"):
        a, b = re.escape(opening), re.escape(closing)
        text = re.sub(rf"{a}\s*([^{b}]*?)\s*{b}", lambda m, a=opening, b=closing: a + m[1] + b, text)
    for before, after in (("= = = =", "===="), ("= = =", "==="), ("= =", "=="), (" \N{DEGREE SIGN} ", "\N{DEGREE SIGN}"),
                          (" \n", "\n"), ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")):
        text = text.replace(before, after)
    return text


def wikitext(model, tokenizer, text, seq_length, stride):
    tokens = tokenizer(detokenize(text))["input_ids"]
    total, targets = 0.0, len(tokens) - 1
    for k in range(max(math.ceil(max(targets - stride, 0) / stride) + 1, 1)):
        window = tokens[k * stride:k * stride + seq_length + 1]
        mask = numpy.zeros(seq_length)
        mask[:len(window) - 1] = 1
        if stride != seq_length and k != 0:
            mask[:-stride] = 0
        if mask.any():
            total += float((token_losses(model, window).numpy() * mask[:len(window) - 1]).sum())
    loss = total / targets
    ratio = targets / (len(text.strip().split(" ")) - 1)
    return {"loss": loss, "ppl": math.exp(min(20, loss)), "adjusted_ppl": math.exp(min(20, loss * ratio))}


@torch.no_grad()
def lambada(model, tokenizer, lines, strict):
    correct = 0
    for line in lines:
        text = json.loads(line)["text"]
        if strict:
            word = text.split()[-1]
            context = tokenizer(text[:text.rfind(word)].strip())["input_ids"]
            labels = tokenizer(" " + word)["input_ids"]
        else:
            *context, label = tokenizer(text)["input_ids"]
            labels = [label]
        tokens = torch.tensor([context + labels])
        best = model(tokens[:, :-1]).logits[0].argmax(-1)
        correct += bool((best[len(context) - 1:] == tokens[0, len(context):]).all())
    return {"correct": correct, "total": len(lines), "accuracy": correct / len(lines)}


def close(name, ours, theirs, digits):
    assert abs(ours - theirs) <= 0.5 * 10.0 ** (1 - digits) * abs(theirs), f"{name}: {ours} instead of {theirs}"


def check_logits(bloomery, folder, model, root, what, vocabulary=VOCABULARY):
    random = numpy.random.default_rng(5)
    length = min(48, model.config.n_positions)
    tokens = random.integers(0, vocabulary, (3, length))
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)).logits.double().numpy()
    for ids, wanted in ((tokens.tolist(), expected), (tokens[0].tolist(), expected[0])):
        (root / "ids.json").write_text(json.dumps(ids))
        run(bloomery, "evaluate", "--task", "LOGITS", "--load", folder, "--ids", root / "ids.json", "--output", root / "out.npy",
            "--dtype", "fp32")
        actual = numpy.load(root / "out.npy")
        assert actual.dtype == numpy.float32 and actual.shape == wanted.shape, f"{what}: {actual.dtype} {actual.shape}"
        error = abs(actual - wanted).max() / max(1.0, abs(wanted).max())
        assert error < 1e-4, f"{what}: logits differ by {error}"
    return error


def check_imported(bloomery, root, name, data):
    vocabulary_files = [data / "tokenizers/gpt2" / file for file in ("gpt2-vocab.json", "gpt2-merges.txt")]
    model = make_model(name, root / "theirs", vocabulary_files)
    tokenizer = AutoTokenizer.from_pretrained(root / "theirs")
    positions, characters = SIZES[name][3], SIZES[name][5]
    run(bloomery, "convert", "--input", root / "theirs", "--output", root / "native", "--to", "native")
    run(bloomery, "checkpoint", "verify", root / "native")
    run(bloomery, "convert", "--input", root / "native", "--output", root / "back", "--to", "hf")
    errors = [check_logits(bloomery, root / folder, model, root, f"{name} {folder}") for folder in ("theirs", "native", "back")]

    again, report = GPT2LMHeadModel.from_pretrained(root / "back", output_loading_info=True)
    assert not any(report.values()), report
    for (key, before), (_, after) in zip(model.state_dict().items(), again.state_dict().items()):
        assert torch.equal(before, after), f"{name}: {key} differs after the way there and back"
    assert AutoTokenizer.from_pretrained(root / "back")("It's 5 o'clock.")["input_ids"] == tokenizer("It's 5 o'clock.")["input_ids"]

    text = (data / "corpora/wikitext-2/wiki.test.raw").read_text()[:characters]
    (root / "text.txt").write_text(text)
    tokens = tokenizer(text)["input_ids"]
    ours = json.loads(run(bloomery, "evaluate", "--task", "PERPLEXITY", "--valid-data", root / "text.txt", "--load",
                          root / "native", "--json"))
    nll = perplexity(model, tokens, positions)
    assert ours["tokens"] == len(tokens) - 1 and ours["words"] == len(text.split()), f"{name}: {ours}"
    close(f"{name}: nll", ours["nll"], nll, 6)
    close(f"{name}: ppl", ours["ppl"], math.exp(nll / (len(tokens) - 1)), 5)
    print(f"{name}: logits within {max(errors):.1e}; WikiText-2: {len(tokens) - 1} tokens, perplexity {ours['ppl']:.6g} and "
          f"{math.exp(nll / (len(tokens) - 1)):.6g}", flush=True)
    return model, tokenizer


def check_tasks(bloomery, root, model, tokenizer, data):
    text = (data / "corpora/wikitext-103/wiki.test.tokens").read_text()[:9000]
    (root / "wiki.txt").write_text(text)
    for seq_length, stride in ((64, 32), (100, 7), (128, 128)):
        ours = json.loads(run(bloomery, "evaluate", "--task", "WIKITEXT103", "--valid-data", root / "wiki.txt", "--load",
                              root / "native", "--seq-length", seq_length, "--overlapping-eval", stride, "--json"))
        for key, value in wikitext(model, tokenizer, text, seq_length, stride).items():
            close(f"WIKITEXT103 {seq_length}/{stride}: {key}", ours[key], value, 5)
    lines = (data / "eval/lambada/lambada_test.jsonl").read_text().splitlines()
    # A random model predicts no word: make some lines end in what it does predict.
    chosen = []
    for number, line in enumerate(lines[:160]):
        start = json.loads(line)["text"]
        ids = tokenizer(start)["input_ids"][:60]
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        chosen.append(json.dumps({"text": tokenizer.decode(ids)}) if number % 2 else line)
    (root / "lambada.jsonl").write_text("\n".join(chosen) + "\n")
    for strict in (False, True):
        ours = json.loads(run(bloomery, "evaluate", "--task", "LAMBADA", "--valid-data", root / "lambada.jsonl", "--load",
                              root / "native", "--json", *(["--strict-lambada"] if strict else [])))
        theirs = lambada(model, tokenizer, chosen, strict)
        assert ours == theirs, f"LAMBADA strict {strict}: {ours} instead of {theirs}"
        print(f"LAMBADA strict {strict}: {ours}")
    run(bloomery, "evaluate", "--task", "WIKITEXT103", "--valid-data", root / "absent", "--load", root / "native", code=2)


def check_trained(bloomery, root, data):
    text = data / "corpora/tinyshakespeare/input.txt"
    gpt2 = ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", data / "tokenizers/gpt2/gpt2-vocab.json", "--merge-file",
            data / "tokenizers/gpt2/gpt2-merges.txt"]
    run(bloomery, "preprocess", "--input", text, "--output-prefix", root / "corpus", *gpt2, "--append-eod", "--workers", 1)
    prefix = str(next(root.glob("corpus*.idx")))[:-4]
    run(bloomery, "pretrain", "--num-layers", 2, "--hidden-size", 64, "--num-attention-heads", 4, "--seq-length", 64,
        "--max-position-embeddings", 64, "--micro-batch-size", 4, "--global-batch-size", 4, "--train-iters", 30, "--lr", 3e-3,
        "--lr-decay-style", "constant", "--data-path", prefix, "--split", "90,5,5", *gpt2, "--save", root / "save",
        "--save-interval", 30, "--eval-interval", 100, "--eval-iters", 1, "--device", "cpu")
    run(bloomery, "convert", "--input", root / "save", "--output", root / "trained", "--to", "hf")
    model, report = GPT2LMHeadModel.from_pretrained(root / "trained", output_loading_info=True)
    assert not any(report.values()), report
    error = check_logits(bloomery, root / "save", model.eval(), root, "trained")
    tokenizer = AutoTokenizer.from_pretrained(root / "trained")
    tokens = tokenizer(text.read_text()[:40_000])["input_ids"]
    (root / "part.txt").write_text(text.read_text()[:40_000])
    ours = json.loads(run(bloomery, "evaluate", "--task", "PERPLEXITY", "--valid-data", root / "part.txt", "--load",
                          root / "save", "--json"))
    close("trained: nll", ours["nll"], perplexity(model, tokens, 64), 6)
    print(f"trained by us: logits within {error:.1e}, perplexity {ours['ppl']:.6g}")


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)  # waiting threads would spin beside ours
    bloomery = sys.argv[1]
    default = pathlib.Path(__file__).resolve().parents[3] / "shared/data"
    data = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else default
    for name in sys.argv[3:] or [*SIZES, "trained"]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            if name == "trained":
                check_trained(bloomery, root, data)
                continue
            model, tokenizer = check_imported(bloomery, root, name, data)
            if name == "spread":
                check_tasks(bloomery, root, model, tokenizer, data)


main()
