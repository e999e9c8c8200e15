#!/usr/bin/env python3
"""`bloomery finetune --dpo` beside PyTorch.

    build/oracle/bin/python tests/long/dpo.py BLOOMERY BLOOMERY_ENCODE_RECORDS [FAMILY...]

The losses are written down here from their papers, on transformers' models, with a second model as the reference; pairs have prompts and answers of
unequal lengths. In fp32:
1. Two steps of plain gradient descent for each loss: loss and figures of both, and as the change of the weights every gradient, of the first step,
   where policy and reference agree, and of the second, where they do not.
2. 60 steps of AdamW: each loss and margin.
3. The same of an adapter from PEFT's own start, where PEFT is installed."""
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from finetune import CONFIGS, TARGETS, encode, small_tokenizer, write

WORDS = "the a sun moon river house small old walks sings under over 12 7 . , ? quiet bright naïve 東京".split()
LENGTH, BATCH = 96, 4


def pairs(count, rng):
    """In all the shapes that are read."""
    text = lambda low, high: " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))
    turn = lambda role, content: {"role": role, "content": content}
    made = []
    for number in range(count):
        prompt, chosen, rejected = text(2, 14), text(1, 16), text(1, 16)
        shape = number % 4
        if shape == 0:
            made.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
        elif shape == 1:
            made.append({"prompt": [turn("user", prompt)], "chosen": [turn("assistant", chosen)], "rejected": [turn("assistant", rejected)]})
        elif shape == 2:
            before = [turn("user", prompt), turn("assistant", text(1, 4)), turn("user", text(1, 4))]
            made.append({"chosen": before + [turn("assistant", chosen)], "rejected": before + [turn("assistant", rejected)]})
        else:
            before = f"\n\nHuman: {prompt}\n\nAssistant:"
            made.append({"chosen": f"{before} {chosen}", "rejected": f"{before} {rejected}"})
    return made


CHAT = ("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}"
        "{% else %}{{ m.content }}{% endif %}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}")


def figures(model, reference, batch, loss_type, beta, smoothing):
    """Loss and what TRL logs, of sequences chosen, rejected, chosen, ..."""
    def logps(of):
        logits = of(input_ids=batch["ids"], attention_mask=batch["mask"]).logits[:, :-1].float()
        each = torch.gather(logits.log_softmax(-1), 2, batch["ids"][:, 1:, None])[..., 0]
        learnt = batch["loss_mask"][:, 1:]
        sums = (each * learnt).sum(-1)
        return sums / learnt.sum(-1) if loss_type == "ipo" else sums
    policy = logps(model)
    with torch.no_grad():
        start = logps(reference)
    gain = policy - start
    h = gain[0::2] - gain[1::2]
    if loss_type == "sigmoid":
        loss = -F.logsigmoid(beta * h) * (1 - smoothing) - F.logsigmoid(-beta * h) * smoothing
    elif loss_type == "robust":
        loss = (-F.logsigmoid(beta * h) * (1 - smoothing) + F.logsigmoid(-beta * h) * smoothing) / (1 - 2 * smoothing)
    elif loss_type == "hinge":
        loss = torch.relu(1 - beta * h)
    else:
        loss = (h - 1 / (2 * beta)) ** 2
    return loss.mean(), {"rewards/chosen": beta * gain[0::2].mean(), "rewards/rejected": beta * gain[1::2].mean(), "rewards/margins": beta * h.mean(),
                         "rewards/accuracies": (h > 0).float().mean(), "logps/chosen": policy[0::2].mean(), "logps/rejected": policy[1::2].mean()}


class Case:
    def __init__(self, program, encoder, root, family):
        self.program, self.root, self.family = program, root / family, family
        self.root.mkdir()
        self.base = self.root / "base"
        rows = pairs(30, random.Random())
        small_tokenizer([{"instruction": " ".join(WORDS), "output": json.dumps(row, ensure_ascii=False)} for row in rows]).save_pretrained(self.base)
        (self.base / "chat_template.jinja").write_text(CHAT)
        size = len(transformers.AutoTokenizer.from_pretrained(self.base))
        config = CONFIGS[family](size)
        config.initializer_range = 0.08
        transformers.AutoModelForCausalLM.from_config(config).float().save_pretrained(self.base)
        self.data = write(self.root / "pairs.jsonl", rows)
        encoded = [(row["ids"][:LENGTH], row["loss_mask"][:LENGTH]) for row in encode(encoder, "--dpo", "--tokenizer", self.base, "--data-path", self.data)]
        self.pairs = list(zip(encoded[0::2], encoded[1::2]))
        assert len({len(ids) for ids, _ in encoded}) > 10 and all(sum(learnt) > 0 for _, learnt in encoded)
        for (chosen, rejected) in self.pairs:  # the prompt is no part of an answer
            first = chosen[1].index(1)
            assert chosen[0][:first] == rejected[0][:first] and rejected[1].index(1) == first

    def tune(self, name, *arguments):
        save = self.root / name
        command = [self.program, "finetune", "--dpo", "--load", self.base, "--data-path", self.data, "--seq-length", LENGTH, "--micro-batch-size", BATCH, "--save", save,
                   "--log-interval", 1, "--device", "cpu", *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        lines = [json.loads(line) for line in (save / "metrics.jsonl").read_text().splitlines()]
        return save, [line for line in lines if line["kind"] == "train"]

    def convert(self, checkpoint, form="hf"):
        out = self.root / f"{checkpoint.parent.name}-{checkpoint.name}-{form}"
        done = subprocess.run([self.program, "convert", "--input", str(checkpoint), "--output", str(out), "--to", form], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return out

    def batches(self, count):
        order = []
        for epoch in range(count * BATCH // len(self.pairs) + 1):
            order += torch.randperm(len(self.pairs), generator=torch.Generator().manual_seed(42 + epoch)).tolist()
        for step in range(count):
            texts = [text for i in order[step * BATCH:(step + 1) * BATCH] for text in self.pairs[i]]
            width = max(len(ids) for ids, _ in texts)
            pad = lambda row, value: row + [value] * (width - len(row))
            yield dict(ids=torch.tensor([pad(ids, 1) for ids, _ in texts]), mask=torch.tensor([pad([1] * len(ids), 0) for ids, _ in texts]),
                       learnt=torch.tensor([pad(learnt, 0) for _, learnt in texts], dtype=torch.float32))

    def load(self, folder):
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def check_figures(self, ours, loss, theirs):
        assert abs(ours["dpo_loss"] - loss.item()) < 1e-5 * max(1, abs(loss.item())), (ours["dpo_loss"], loss.item())
        for name, value in theirs.items():
            assert abs(ours[name] - value.item()) < 2e-5 * max(1, abs(value.item())), (name, ours[name], value.item())

    def check_gradients(self, loss_type, beta, smoothing):
        rate = {"ipo": 0.05, "hinge": 2}.get(loss_type, 2)
        save, lines = self.tune(f"sgd-{loss_type}-{smoothing}", "--train-iters", 2, "--save-interval", 1, "--optimizer", "sgd", "--sgd-momentum", 0, "--lr", rate, "--lr-decay-style", "constant",
                                "--clip-grad", 0, "--dpo-loss", loss_type, "--dpo-beta", beta, "--dpo-label-smoothing", smoothing)
        weights = [self.base, self.convert(save / "step-1"), self.convert(save / "step-2")]
        reference, worst, margins = self.load(self.base), 0.0, []
        for step, batch in enumerate(self.batches(2)):
            model, after = self.load(weights[step]), self.load(weights[step + 1]).state_dict()
            loss, theirs = figures(model, reference, batch, loss_type, beta, smoothing)
            loss.backward()
            self.check_figures(lines[step], loss, theirs)
            margins.append(theirs["rewards/margins"].item())
            for name, parameter in model.named_parameters():
                change = (parameter.detach().double() - after[name].double()) / rate
                largest = parameter.grad.abs().max().item()
                rounding = 1.2e-7 * max(parameter.abs().max().item(), after[name].abs().max().item()) / rate  # the change is a difference of rounded weights
                error = (change - parameter.grad.double()).abs().max().item()
                assert error < 1e-5 * largest + rounding, (step, name, error, largest, rounding)
                worst = max(worst, (error - rounding) / largest if largest else 0)
        assert margins[0] == 0 or abs(margins[0]) < 1e-6
        assert abs(margins[1]) > 1e-3, margins
        return f"{loss_type}: losses {lines[0]['dpo_loss']:.6f} and {lines[1]['dpo_loss']:.6f}, gradients within {max(worst, 0):.1e} of each tensor's largest"

    def follow(self, model, reference, lines, rate):
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer, steps, apart = torch.optim.AdamW(learning, rate, (0.9, 0.999), 1e-8, 0.0), len(lines), 0.0
        for step, batch in enumerate(self.batches(steps)):
            for group in optimizer.param_groups:
                group["lr"] = rate * (steps - step) / steps
            loss, theirs = figures(model, reference, batch, "sigmoid", 0.1, 0)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            apart = max(apart, abs(lines[step]["dpo_loss"] - loss.item()), abs(lines[step]["rewards/margins"] - theirs["rewards/margins"].item()))
        assert lines[-1]["dpo_loss"] < 0.5 and apart < 1e-3, (apart, lines[-1]["dpo_loss"])
        return f"{steps} steps from {lines[0]['dpo_loss']:.4f} to {lines[-1]['dpo_loss']:.4f}: losses and margins at most {apart:.1e} apart"

    def check_steps(self, steps):
        rate = 5e-4
        _, lines = self.tune("steps", "--train-iters", steps, "--lr", rate)
        return self.follow(self.load(self.base), self.load(self.base), lines, rate)

    def check_adapter(self, steps):
        import peft
        rate = 5e-3
        config = peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS[self.family])
        model = peft.get_peft_model(self.load(self.base), config)
        model.save_pretrained(self.root / "initial")
        _, lines = self.tune("lora", "--adapter", self.root / "initial", "--train-iters", steps, "--lr", rate)
        return self.follow(model, self.load(self.base), lines, rate)


def main():
    program, encoder = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        for family in sys.argv[3:] or CONFIGS:
            case = Case(program, encoder, pathlib.Path(folder), family)
            for loss in (("sigmoid", 0.1, 0), ("sigmoid", 0.3, 0.2), ("robust", 0.2, 0.1), ("hinge", 0.1, 0), ("ipo", 0.4, 0)):
                print(f"{family}: {case.check_gradients(*loss)}", flush=True)
            print(f"{family}: {case.check_steps(60)}", flush=True)
            if importlib.util.find_spec("peft"):
                print(f"{family}: LoRA: {case.check_adapter(60)}", flush=True)
            else:
                print(f"{family}: PEFT is not installed: no adapters are compared")


if __name__ == "__main__":
    main()
