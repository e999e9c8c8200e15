#!/usr/bin/env python3
"""`bloomery finetune --task` beside transformers, and its samples beside Megatron-DeepSpeed's own code.

    build/oracle/bin/python tests/long/tasks.py BLOOMERY BLOOMERY_ENCODE_TASKS [MEGATRON_DEEPSPEED]

1. With a checkout of Megatron-DeepSpeed at 6acc370a: ids, types, masks, labels and numbers of real rows of MNLI and questions of RACE.
2. One step of plain gradient descent in fp32: the loss, and as the change of the weights every gradient, of
   Bert and MegatronBert with the heads for classification, regression and multiple choice.
3. Sets that can be learnt, of the shapes of MNLI and RACE: losses of the first steps, and the accuracy that the same
   model of transformers reaches with the same samples in the same order."""
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types

import torch
import transformers

transformers.utils.logging.disable_progress_bar()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = next((p / "shared" / "data" for p in ROOT.parents if (p / "shared" / "data").is_dir()), ROOT)
LABELS = ["contradiction", "entailment", "neutral"]
WORDS = ["".join(pair) for pair in zip("bcdfghklmn" * 6, sorted("aeiouy" * 10), "tnrslkmpbd" * 6)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SEED = 1234


# --- samples beside Megatron's code

def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


def megatron_datasets(checkout):
    """Its classes by themselves: the rest of the package needs a GPU."""
    for name in ("megatron", "tasks", "tasks.glue", "tasks.race"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["megatron"].print_rank_0 = lambda *_: None
    module(checkout / "tasks/data_utils.py", "tasks.data_utils")
    module(checkout / "tasks/glue/data.py", "tasks.glue.data")
    tokenization = module(checkout / "megatron/tokenizer/bert_tokenization.py", "bert_tokenization")
    return (tokenization.FullTokenizer, module(checkout / "tasks/glue/mnli.py", "tasks.glue.mnli").MNLIDataset,
            module(checkout / "tasks/race/data.py", "tasks.race.data").RaceDataset)


class MegatronTokenizer:
    def __init__(self, full):
        self.full = full
        self.cls, self.sep, self.pad = (full.vocab[t] for t in ("[CLS]", "[SEP]", "[PAD]"))

    def tokenize(self, text):
        return self.full.convert_tokens_to_ids(self.full.tokenize(text))


def check_samples(encoder, checkout):
    vocabulary = next((SHARED / "tokenizers" / "bert").glob("*uncased*vocab*.txt"), None)
    if vocabulary is None:
        return print("there are no shared samples here: they are not compared")
    Full, Mnli, Race = megatron_datasets(checkout)
    glob = sys.modules["tasks.race.data"].glob  # files in the order of their names, which is the file system's there
    sys.modules["tasks.race.data"].glob = types.SimpleNamespace(glob=lambda pattern: sorted(glob.glob(pattern)))
    tokenizer = MegatronTokenizer(Full(str(vocabulary), do_lower_case=True))
    count = 0
    paths = [("MNLI", Mnli, p) for p in sorted((SHARED / "eval/mnli-sample/glue").glob("*.tsv"))]
    paths += [("RACE", Race, p) for p in sorted({f.parent for f in (SHARED / "eval/race-sample-noncommercial").glob("*/*/*.txt")})]
    for length in (512, 128, 24):
        for task, dataset, path in paths:
            loaded = dataset("x", [str(path)], tokenizer, length)
            theirs = [loaded[i] for i in range(len(loaded))]
            done = subprocess.run([encoder, "--vocab-file", str(vocabulary), "--seq-length", str(length), "--task", task, "--valid-data", str(path)],
                                  capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            ours = [json.loads(line) for line in done.stdout.splitlines()]
            for a, b in zip(ours, theirs, strict=True):
                assert a["tokens"] == b["text"].reshape(-1).tolist() and a["types"] == b["types"].reshape(-1).tolist(), (path, length)
                assert a["lengths"] == b["padding_mask"].reshape(-1, length).sum(-1).tolist() and a["label"] == b["label"] and a["uid"] == b["uid"], path
                count += 1
    print(f"{count} samples of MNLI and RACE: ids, types, masks, labels and numbers are those of Megatron's code")


# --- data that can be learnt

def pairs(count, rng):
    """Which third of all words has the last one of B?"""
    rows = []
    for number in range(count):
        a, b = rng.sample(WORDS, 3), rng.sample(WORDS, 3)
        rows.append((number, " ".join(a), " ".join(b), WORDS.index(b[-1]) % 3))
    return rows


def write_pairs(path, rows):
    text = "index\t1\t2\t3\t4\t5\t6\t7\ts1\ts2\tlabel1\tgold_label\n"
    text += "".join(f"{n}\t1\t2\t3\t4\t5\t6\t7\t{a}\t{b}\tx\t{LABELS[label]}\n" for n, a, b, label in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def questions(count, rng):
    """The right choice is among every fourth of all words, the others are not."""
    rows = []
    for _ in range(count):
        choices = rng.sample([w for i, w in enumerate(WORDS) if i % 4], 4)
        right = rng.randrange(4)
        choices[right] = rng.choice(WORDS[::4])
        rows.append((" ".join(rng.sample(WORDS, 4)), choices, right))
    return rows


def write_questions(folder, rows):
    folder.mkdir(parents=True)
    lines = [json.dumps(dict(article=article, questions=["_"], options=[choices], answers=["ABCD"[right]])) for article, choices, right in rows]
    (folder / "1.txt").write_text("\n".join(lines) + "\n")
    return folder


class Case:
    """A model, and the samples of a task as transformers takes them."""

    def __init__(self, program, root, task, architecture, length=16, size=64, layers=2, std=0.02):
        self.program, self.root, self.task, self.length = program, root / (task + architecture), task, length
        self.root.mkdir()
        self.base = self.root / "base"
        self.base.mkdir()
        (self.base / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
        self.ids = {w: i for i, w in enumerate(SPECIAL + WORDS)}
        kind = transformers.BertConfig if architecture.startswith("Bert") else transformers.MegatronBertConfig
        config = kind(vocab_size=len(self.ids), hidden_size=size, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=4 * size,
                      max_position_embeddings=length, initializer_range=std, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                      num_labels={"MNLI": 3, "STS-B": 1, "RACE": 1}[task])
        torch.manual_seed(5)
        self.model_class = getattr(transformers, architecture)
        model = self.model_class(config).float()
        with torch.no_grad():  # with 1 and 0 mistakes in norms and biases would not show
            for name, parameter in model.named_parameters():
                if parameter.dim() == 1:
                    parameter.add_(0.1 * torch.randn_like(parameter))
        model.save_pretrained(self.base)
        self.rng = random.Random(SEED)

    def samples(self, rows):
        """Batches of tensors by index."""
        def sequence(first, second):
            ids = [2] + [self.ids[w] for w in first.split()] + [3] + [self.ids[w] for w in second.split()] + [3]
            middle = len(first.split()) + 2
            pad = self.length - len(ids)
            return ids + [0] * pad, [0] * middle + [1] * (len(ids) - middle) + [0] * pad, [1] * len(ids) + [0] * pad
        if self.task == "RACE":
            made = [([sequence(c, article) for c in choices], right) for article, choices, right in rows]
            arrays = [torch.tensor([[s[i] for s in sequences] for sequences, _ in made]) for i in range(3)]
            labels = torch.tensor([right for _, right in made])
        else:
            made = [sequence(a, b) for _, a, b, _ in rows]
            arrays = [torch.tensor([s[i] for s in made]) for i in range(3)]
            labels = torch.tensor([float(label) if self.task == "STS-B" else label for *_, label in rows])
        return dict(input_ids=arrays[0], token_type_ids=arrays[1], attention_mask=arrays[2], labels=labels)

    def write(self, name, rows):
        if self.task == "RACE":
            return write_questions(self.root / "RACE" / name, rows)
        if self.task == "MNLI":
            return write_pairs(self.root / "MNLI" / (name + ".tsv"), rows)
        path = self.root / "STS-B" / (name + ".tsv")
        path.parent.mkdir(exist_ok=True)
        path.write_text("i\t1\t2\t3\t4\t5\t6\ta\tb\tscore\n" + "".join(f"{n}\t1\t2\t3\t4\t5\t6\t{a}\t{b}\t{s}\n" for n, a, b, s in rows))
        return path

    def rows(self, count):
        return questions(count, self.rng) if self.task == "RACE" else pairs(count, self.rng)

    def tune(self, name, train, valid, *arguments):
        save = self.root / name
        command = [self.program, "finetune", "--task", self.task, "--train-data", train, "--valid-data", valid, "--pretrained-checkpoint", self.base,
                   "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", self.base / "vocab.txt", "--seq-length", self.length, "--seed", SEED,
                   "--attention-dropout", 0, "--hidden-dropout", 0, "--save", save, "--log-interval", 1, "--eval-iters", 0, "--device", "cpu", *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        lines = [json.loads(line) for line in (save / "metrics.jsonl").read_text().splitlines()]
        return save, [line["lm_loss"] for line in lines if "lm_loss" in line], done.stdout

    def model(self, folder=None):
        return self.model_class.from_pretrained(folder or self.base, dtype=torch.float32, attn_implementation="eager")

    def check_gradients(self):
        rate, rows = 0.5, self.rows(8)
        save, losses, _ = self.tune("sgd", self.write("one", rows), self.write("two", rows), "--epochs", 1, "--micro-batch-size", 8, "--optimizer", "sgd",
                                    "--sgd-momentum", 0, "--lr", rate, "--lr-decay-style", "constant", "--clip-grad", 0)
        out = self.root / "sgd-hf"
        done = subprocess.run([self.program, "convert", "--input", str(save), "--output", str(out), "--to", "hf"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        model = self.model()
        loss = model(**self.samples(rows)).loss
        loss.backward()
        assert abs(losses[0] - loss.item()) < 1e-5 * loss.item(), (losses[0], loss.item())
        tuned, worst = self.model(out).state_dict(), 0.0
        everything = max(p.grad.abs().max().item() for p in model.parameters())
        for name, parameter in model.named_parameters():
            change = (parameter.detach().double() - tuned[name].double()) / rate
            largest = parameter.grad.abs().max().item()
            # The change is a difference of rounded weights; gradients that are zero but for rounding are compared with the largest of all.
            rounding = 1.2e-7 * parameter.abs().max().item() / rate + 1e-8 * everything
            error = (change - parameter.grad.double()).abs().max().item()
            if self.task == "RACE" and name == "classifier.bias":  # what adds the same to all choices has no gradient but that of rounding
                assert error < 1e-6, error
                continue
            assert error < 1e-5 * largest + rounding, (name, error, largest)
            worst = max(worst, (error - rounding) / largest if largest else 0)
        print(f"{self.model_class.__name__} ({self.task}): loss {losses[0]:.6f} beside {loss.item():.6f}, gradients within {max(worst, 0):.1e} of each "
              "tensor's largest")

    def check_accuracy(self, rows, epochs, rate):
        batch, train, valid = 32, self.rows(rows), self.rows(500)
        steps = rows // batch * epochs
        _, ours, log = self.tune("learn", self.write("train", train), self.write("dev", valid), "--epochs", epochs, "--micro-batch-size", batch, "--lr", rate,
                                 "--lr-decay-style", "linear", "--lr-warmup-fraction", 0.1, "--weight-decay", 0)
        found = re.findall(r">> \|epoch: \d+\| overall: correct / total = (\d+) / (\d+)", log)
        model, all_samples = self.model().train(), self.samples(train)
        optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, 0.999), 1e-8, 0.0)
        theirs, warmup = [], 0.1 * steps * batch
        for epoch in range(epochs):
            order = torch.randperm(rows, generator=torch.Generator().manual_seed(SEED + epoch))
            for begin in range(0, rows // batch * batch, batch):
                seen = len(theirs) * batch
                share = seen / warmup if seen < warmup else (steps * batch - seen) / (steps * batch - warmup)
                for group in optimizer.param_groups:
                    group["lr"] = rate * share
                loss = model(**{k: v[order[begin:begin + batch]] for k, v in all_samples.items()}).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                theirs.append(loss.item())
        with torch.no_grad():
            test = self.samples(valid)
            right = (model.eval()(**test).logits.argmax(-1) == test["labels"]).sum().item()
        apart = max(abs(a - b) for a, b in zip(ours[:30], theirs[:30]))
        assert len(ours) == len(theirs) == steps and apart < 1e-4, apart
        mine = int(found[-1][0])
        print(f"{self.model_class.__name__} ({self.task}): {steps} steps from {theirs[0]:.3f} to {theirs[-1]:.3f}, losses of the first 30 at most {apart:.1e} "
              f"apart; {mine / 5:.1f} % right beside transformers' {right / 5:.1f} %")
        assert mine >= 475 and right >= 475 and abs(mine - right) <= 10, (mine, right)


def main():
    program, encoder = sys.argv[1:3]
    torch.set_num_threads(2)
    if len(sys.argv) > 3:
        check_samples(encoder, pathlib.Path(sys.argv[3]))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for number, (task, head) in enumerate([("MNLI", "ForSequenceClassification"), ("STS-B", "ForSequenceClassification"), ("RACE", "ForMultipleChoice")]):
            for stem in ("Bert", "MegatronBert"):
                case_root = root / f"gradients{number}{stem}"
                case_root.mkdir()
                Case(program, case_root, task, stem + head, std=0.15).check_gradients()  # with small weights choices are too alike
        for task, architecture, rows, epochs, rate in (("MNLI", "MegatronBertForSequenceClassification", 2048, 6, 1e-3), ("RACE", "BertForMultipleChoice", 1024, 6, 1e-3)):
            case_root = root / ("learn" + task)
            case_root.mkdir()
            Case(program, case_root, task, architecture).check_accuracy(rows, epochs, rate)


if __name__ == "__main__":
    main()
