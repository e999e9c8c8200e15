#!/usr/bin/env python3
"""`bloomery finetune` beside transformers, and beside TRL where it is installed.

    build/oracle/bin/python tests/long/finetune.py BLOOMERY BLOOMERY_ENCODE_RECORDS [FAMILY...]

1. Token ids and what is learnt of 500 records: the prompt format of a Japanese instruction tuning with TRL's
   DataCollatorForCompletionOnlyLM; and chat templates with {% generation %} by apply_chat_template.
2. One step of plain gradient descent in fp32: the loss, and as the change of the weights every gradient.
3. 100 steps of AdamW, each loss.
4. `convert --merge-adapter` beside PEFT where it is installed.
5. `finetune --adapter` beside PEFT: gradients of a first step, 100 steps from PEFT's own initial adapter, and the adapter written back.
6. The same with --quantize-base beside PEFT on weights that went through the formats as their definitions have them, and through bitsandbytes where it is
   installed."""
import ast
import importlib.util
import json
import lzma
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import tokenizers
import torch
import transformers

transformers.utils.logging.disable_progress_bar()
from transformers import PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED_DATA = ROOT.parent / "shared" / "data"
SEED_PROMPT = "以下はタスクを説明する指示です。要求を適切に満たす応答を書きなさい。\n### 指示:\n{{ instruction }}\n### 応答:\n{{ output }}\n{{ eos_token }}"
RESPONSE = "### 応答:\n"
CHAT = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
        "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer_folder(root, name, **special):
    folder = root / name
    folder.mkdir()
    text = lzma.open(SHARED_DATA / "tokenizers" / "hf-json" / f"{name}.json.xz").read().decode()
    (folder / "tokenizer.json").write_text(text)
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(special, tokenizer_class="PreTrainedTokenizerFast")))
    return folder


def records(count, rng):
    lines = [json.loads(line) for line in (SHARED_DATA / "instruct" / "dolly_hhrlhf_train_small.jsonl").read_text().splitlines()]
    words = ["日本の首都は？", "東京です。", "🙂", "### 応答:", "\n", "naïve", "a  b", "1,234"]
    made = []
    for line in rng.sample(lines, count):
        more = " ".join(rng.choice(words) for _ in range(rng.randint(0, 3)))
        made.append({"instruction": line["prompt"][-200:] + more, "input": rng.choice(["", "", "x"]), "output": line["response"][:300] + more})
    return made


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def encode(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def trl_collator():
    """TRL's class by itself: the rest of the package needs much more."""
    found = importlib.util.find_spec("trl")
    if found is None:
        return None
    source = (pathlib.Path(found.origin).parent / "trainer" / "utils.py").read_text()
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "DataCollatorForCompletionOnlyLM")
    import typing
    import warnings
    names = {"np": numpy, "torch": torch, "warnings": warnings, "DataCollatorForLanguageModeling": transformers.DataCollatorForLanguageModeling,
             "Union": typing.Union, "Optional": typing.Optional, "Any": typing.Any}
    exec(compile(ast.Module([node], []), "trl", "exec"), names)
    return names["DataCollatorForCompletionOnlyLM"]


def check_collator(program, root):
    Collator = trl_collator()
    if Collator is None:
        return print("TRL is not installed: its collator is not compared")
    folder = tokenizer_folder(root, "gpt-neox-20b", eos_token="<|endoftext|>", pad_token="<|padding|>")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    template = root / "seed.jinja"
    template.write_text(SEED_PROMPT)
    rows = records(900, random.Random(1))
    file = write(root / "seed.jsonl", rows)
    wanted = [row for row in rows if row["input"] == ""][:500]
    assert len(wanted) == 500
    import warnings
    warnings.simplefilter("ignore")
    for instruction in (None, "### 指示:\n"):
        collator = Collator(RESPONSE, tokenizer=tokenizer, **({"instruction_template": instruction} if instruction else {}))
        extra = ["--instruction-template", "### 指示:\\n"] if instruction else []
        ours = encode(program, "--tokenizer", folder, "--data-path", file, "--prompt-template", template, "--only", "input=", "--response-template",
                      "### 応答:\\n", *extra)[:500]
        for row, got in zip(wanted, ours, strict=True):
            text = SEED_PROMPT.replace("{{ instruction }}", row["instruction"]).replace("{{ output }}", row["output"]).replace("{{ eos_token }}", tokenizer.eos_token)
            batch = collator([tokenizer(text)])
            labels = batch["labels"][0].tolist()
            assert got["ids"] == batch["input_ids"][0].tolist(), row
            assert [i if m else -100 for i, m in zip(got["ids"], got["loss_mask"])] == labels, (instruction, row)
    print("500 records: ids and labels are those of TRL's collator, with and without an instruction template")


def check_chat(program, root):
    folder = tokenizer_folder(root, "qwen2.5", eos_token="<|im_end|>", pad_token="<|endoftext|>")
    (folder / "chat_template.jinja").write_text(CHAT)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    rng = random.Random(2)
    rows = []
    for row in records(500, rng):
        turns = [{"role": "system", "content": "Be short."}] * rng.randint(0, 1)
        for _ in range(rng.randint(1, 3)):
            turns = turns + [{"role": "user", "content": row["instruction"]}, {"role": "assistant", "content": row["output"]}]
        rows.append({"messages": turns})
    ours = encode(program, "--tokenizer", folder, "--data-path", write(root / "chat.jsonl", rows))
    for row, got in zip(rows, ours, strict=True):
        expected = tokenizer.apply_chat_template(row["messages"], chat_template=CHAT, return_dict=True, return_assistant_tokens_mask=True)
        assert got["ids"] == expected["input_ids"] and got["loss_mask"] == expected["assistant_masks"], row
    # A special token that a user writes stays text.
    hostile = [{"messages": [{"role": "user", "content": "x<|im_end|>y"}, {"role": "assistant", "content": "ok"}]}]
    got = encode(program, "--tokenizer", folder, "--data-path", write(root / "hostile.jsonl", hostile))[0]
    assert got["ids"].count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 2 and tokenizer.decode(got["ids"]).count("<|im_end|>") == 3
    print("500 conversations: ids and assistant masks are those of apply_chat_template; special tokens of users stay text")


CONFIGS = {
    "gpt_neox": lambda v: transformers.GPTNeoXConfig(vocab_size=v, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=256,
                                                     hidden_dropout=0.0, attention_dropout=0.0),
    "llama": lambda v: transformers.LlamaConfig(vocab_size=v, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
                                                max_position_embeddings=256),
    "gpt2": lambda v: transformers.GPT2Config(vocab_size=v, n_embd=64, n_layer=2, n_head=4, n_positions=256, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
}
TARGETS = {"gpt_neox": ["query_key_value", "dense", "dense_4h_to_h"], "llama": ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
           "gpt2": ["c_attn", "attn.c_proj", "c_fc"]}
LENGTH, BATCH = 160, 4
NF4 = numpy.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
                   0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                   0.7229568362236023, 1.0])


def through(form, weight):
    """What is left of a matrix [out, in] in a format, by its definition in fp64."""
    rows = weight.double().numpy()
    if form == "int8":
        scale = abs(rows).max(1, keepdims=True)
        return torch.from_numpy(numpy.round(rows / scale * 127) / 127 * scale).float()
    made = numpy.empty_like(rows)
    for first in range(0, rows.shape[1], 64):
        block = rows[:, first:first + 64]
        scale = abs(block).max(1, keepdims=True)
        made[:, first:first + 64] = NF4[abs((block / scale)[..., None] - NF4).argmin(-1)] * scale
    if rows.shape[1] % 64 == 0 and importlib.util.find_spec("bitsandbytes"):
        import bitsandbytes.functional as bnb
        theirs = bnb.dequantize_4bit(*bnb.quantize_4bit(weight.contiguous(), blocksize=64, quant_type="nf4"))
        assert (theirs.double() - torch.from_numpy(made)).abs().max() < 1e-6 * weight.abs().max()
    return torch.from_numpy(made).float()


def quantize_layers(model, form):
    """The linear layers in blocks; GPT-2 keeps them transposed."""
    count = 0
    for name, module in model.named_modules():
        if ".layers." not in name and ".h." not in name:
            continue
        with torch.no_grad():
            if isinstance(module, torch.nn.Linear):
                module.weight.copy_(through(form, module.weight.detach()))
                count += 1
            elif isinstance(module, transformers.pytorch_utils.Conv1D):
                module.weight.copy_(through(form, module.weight.detach().T.contiguous()).T)
                count += 1
    assert count >= 8, count


def small_tokenizer(rows):
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator([row["instruction"] + row["output"] for row in rows], vocab_size=600, special_tokens=["<|endoftext|>", "<|padding|>"])
    return PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, eos_token="<|endoftext|>", pad_token="<|padding|>")


class Case:
    def __init__(self, program, encoder, root, family):
        self.program, self.root = program, root / family
        self.root.mkdir()
        self.base = self.root / "base"
        rows = records(50, random.Random(4))
        small_tokenizer(rows).save_pretrained(self.base)
        torch.manual_seed(3)
        transformers.AutoModelForCausalLM.from_config(CONFIGS[family](600)).float().save_pretrained(self.base)
        self.template = self.root / "seed.jinja"
        self.template.write_text(SEED_PROMPT.replace("{{ output }}\n{{ eos_token }}", "{% generation %}{{ output }}\n{{ eos_token }}{% endgeneration %}"))
        self.data = write(self.root / "train.jsonl", rows)
        encoded = encode(encoder, "--tokenizer", self.base, "--data-path", self.data, "--prompt-template", self.template)
        self.rows = [(row["ids"][:LENGTH], row["loss_mask"][:LENGTH]) for row in encoded]

    def tune(self, name, *arguments, data=None):
        save = self.root / name
        source = ["--data-path", data] if data else ["--data-path", self.data, "--prompt-template", self.template]
        command = [self.program, "finetune", "--load", self.base, *source, "--seq-length", LENGTH, "--micro-batch-size", BATCH, "--save", save,
                   "--log-interval", 1, "--device", "cpu", *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        lines = [json.loads(line) for line in (save / "metrics.jsonl").read_text().splitlines()]
        return save, [line["lm_loss"] for line in lines if "lm_loss" in line]

    def convert(self, save, name, form):
        out = self.root / name
        done = subprocess.run([self.program, "convert", "--input", str(save), "--output", str(out), "--to", form], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return out

    def batches(self, count):
        """Those of ours: torch.randperm of seed + epoch."""
        order = []
        for epoch in range(count * BATCH // len(self.rows) + 1):
            order += torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(42 + epoch)).tolist()
        for step in range(count):
            chosen = [self.rows[i] for i in order[step * BATCH:(step + 1) * BATCH]]
            width = max(len(ids) for ids, _ in chosen)
            ids = torch.tensor([ids + [1] * (width - len(ids)) for ids, _ in chosen])
            mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in chosen])
            labels = torch.tensor([[i if m else -100 for i, m in zip(*row)] + [-100] * (width - len(row[0])) for row in chosen])
            yield dict(input_ids=ids, attention_mask=mask, labels=labels)

    def check_gradients(self):
        rate = 0.5
        save, losses = self.tune("sgd", "--train-iters", 1, "--optimizer", "sgd", "--sgd-momentum", 0, "--lr", rate, "--lr-decay-style", "constant", "--clip-grad", 0)
        out = self.convert(save, "sgd-hf", "hf")
        model = transformers.AutoModelForCausalLM.from_pretrained(self.base).float()
        loss = model(**next(self.batches(1))).loss
        loss.backward()
        assert abs(losses[0] - loss.item()) < 1e-5 * loss.item(), (losses[0], loss.item())
        tuned, worst = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).state_dict(), 0.0
        for name, parameter in model.named_parameters():
            change = (parameter.detach().double() - tuned[name].double()) / rate
            largest = parameter.grad.abs().max().item()
            # The change is a difference of rounded weights.
            rounding = 1.2e-7 * parameter.abs().max().item() / rate
            error = (change - parameter.grad.double()).abs().max().item()
            assert error < 1e-5 * largest + rounding, (name, error, largest)
            worst = max(worst, (error - rounding) / largest if largest else 0)
        return f"first step: loss {losses[0]:.6f} beside {loss.item():.6f}, gradients within {max(worst, 0):.1e} of each tensor's largest"

    def check_steps(self, steps):
        rate = 1e-3
        theirs = self.steps_of(transformers.AutoModelForCausalLM.from_pretrained(self.base).float().train(), steps, rate)
        _, ours = self.tune("steps", "--train-iters", steps, "--lr", rate)
        return self.compared(ours, theirs)

    def steps_of(self, model, steps, rate):
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(learning, rate, (0.9, 0.999), 1e-8, 0.0)
        theirs = []
        for step, batch in enumerate(self.batches(steps)):
            for group in optimizer.param_groups:
                group["lr"] = rate * (steps - step) / steps
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            theirs.append(loss.item())
        return theirs

    def compared(self, ours, theirs):
        apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        assert apart < 1e-4, (apart, [abs(a - b) for a, b in zip(ours, theirs)][::10])
        return f"{len(theirs)} steps from {theirs[0]:.4f} to {theirs[-1]:.4f}: losses at most {apart:.1e} apart"


    def check_adapter(self):
        """A random adapter of PEFT's, merged by both."""
        import peft
        model = transformers.AutoModelForCausalLM.from_pretrained(self.base).float()
        config = peft.LoraConfig(r=3, lora_alpha=5, use_rslora=True, init_lora_weights=False, task_type="CAUSAL_LM")
        tuned = peft.get_peft_model(model, config)
        tuned.save_pretrained(self.root / "adapter")
        out = self.root / "merged"
        done = subprocess.run([self.program, "convert", "--input", str(self.base), "--merge-adapter", str(self.root / "adapter"), "--output", str(out), "--to", "hf"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        ours = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).state_dict()
        base = transformers.AutoModelForCausalLM.from_pretrained(self.base).float().state_dict()
        apart, changed = 0.0, 0
        for name, weight in tuned.merge_and_unload().state_dict().items():
            apart = max(apart, (weight - ours[name]).abs().max().item() / max(weight.abs().max().item(), 1e-3))
            changed += not torch.equal(base[name], ours[name])
        assert apart < 1e-6 and changed >= 2, (apart, changed)
        return f"PEFT's adapter merged: {changed} weights changed, at most {apart:.1e} of the largest apart"


    def peft_model(self, **more):
        import peft
        model = transformers.AutoModelForCausalLM.from_pretrained(self.base).float()
        return peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS[self.root.name], **more))

    def check_adapter_gradients(self):
        """One step of gradient descent from an adapter that is zero nowhere."""
        from safetensors.torch import load_file
        rate = 0.5
        model = self.peft_model(init_lora_weights=False)
        model.save_pretrained(self.root / "start")
        save, losses = self.tune("lora-sgd", "--adapter", self.root / "start", "--train-iters", 1, "--optimizer", "sgd", "--sgd-momentum", 0, "--lr", rate,
                                 "--lr-decay-style", "constant", "--clip-grad", 0)
        out = self.convert(save, "lora-sgd-peft", "peft")
        loss = model(**next(self.batches(1))).loss
        loss.backward()
        assert abs(losses[0] - loss.item()) < 1e-5 * loss.item(), (losses[0], loss.item())
        ours, worst, count = load_file(out / "adapter_model.safetensors"), 0.0, 0
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                count += 1
                change = (parameter.detach().double() - ours[name.replace(".default", "")].double()) / rate
                largest, rounding = parameter.grad.abs().max().item(), 1.2e-7 * parameter.abs().max().item() / rate
                error = (change - parameter.grad.double()).abs().max().item()
                assert error < 1e-5 * largest + rounding, (name, error, largest)
                worst = max(worst, (error - rounding) / largest)
        assert count == len(ours)
        return f"LoRA's first step: loss {losses[0]:.6f} beside {loss.item():.6f}, gradients of {count} matrices within {max(worst, 0):.1e} of each one's largest"

    def check_adapter_steps(self, steps):
        """From PEFT's own initial adapter; what comes out is read by PEFT."""
        import peft
        rate = 2e-3
        torch.manual_seed(5)
        model = self.peft_model(use_rslora=True).train()
        model.save_pretrained(self.root / "initial")
        theirs = self.steps_of(model, steps, rate)
        save, ours = self.tune("lora", "--adapter", self.root / "initial", "--train-iters", steps, "--lr", rate)
        text = self.compared(ours, theirs)
        base = transformers.AutoModelForCausalLM.from_pretrained(self.base).float()
        read = peft.PeftModel.from_pretrained(base, self.convert(save, "lora-peft", "peft")).eval()
        merged = transformers.AutoModelForCausalLM.from_pretrained(self.convert(save, "lora-hf", "hf"), dtype=torch.float32).eval()
        ids = next(self.batches(1))["input_ids"]
        with torch.no_grad():
            wanted = model.eval()(input_ids=ids).logits
            apart = {name: ((other(input_ids=ids).logits - wanted).abs().max() / wanted.abs().max()).item() for name, other in (("adapter", read), ("merged", merged))}
        assert max(apart.values()) < 1e-3, apart
        return f"LoRA's {text}; logits in PEFT {apart['adapter']:.1e} and merged {apart['merged']:.1e} of the largest apart"


    def check_quantized(self, form, steps):
        import peft
        rate = 2e-3
        base = transformers.AutoModelForCausalLM.from_pretrained(self.base).float()
        quantize_layers(base, form)
        torch.manual_seed(6)
        model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=TARGETS[self.root.name])).train()
        model.save_pretrained(self.root / f"initial-{form}")
        theirs = self.steps_of(model, steps, rate)
        _, ours = self.tune(f"lora-{form}", "--adapter", self.root / f"initial-{form}", "--train-iters", steps, "--lr", rate, "--quantize-base", form)
        apart = max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True))
        assert apart < 1e-5, (apart, ours, theirs)
        return f"LoRA beside weights in {form}: {steps} steps from {theirs[0]:.4f} to {theirs[-1]:.4f}, losses at most {apart:.1e} of theirs apart"


def main():
    program, encoder = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        if SHARED_DATA.exists():
            check_collator(encoder, root)
            check_chat(encoder, root)
        for family in sys.argv[3:] or CONFIGS:
            case = Case(program, encoder, root, family)
            print(f"{family}: {case.check_gradients()}")
            print(f"{family}: {case.check_steps(100)}")
            if not importlib.util.find_spec("peft"):
                print(f"{family}: PEFT is not installed: no adapters are compared")
                continue
            print(f"{family}: {case.check_adapter()}")
            print(f"{family}: {case.check_adapter_gradients()}")
            print(f"{family}: {case.check_adapter_steps(100)}")
            for form in ("nf4", "int8"):
                print(f"{family}: {case.check_quantized(form, 10)}")


if __name__ == "__main__":
    main()
