#!/usr/bin/env python3
"""Which tokens of a conversation are learnt, beside transformers' return_assistant_tokens_mask: real tokenizers with normalizers,
byte fallback and special tokens, random conversations in many scripts.

    build/oracle/bin/python tests/long/chat_masks.py BLOOMERY_ENCODE_RECORDS [--records N] [--seed S] [--data DIR]"""
import argparse
import json
import lzma
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
INST = ("{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% else %}"
        "{% generation %}{{ m.content + eos_token }}{% endgeneration %}{% endif %}{% endfor %}")
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
          "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}")
WORDS = ["The", "boat", "was", "small", "e\u0301lan", "cafe\u0301", "café", "naïve", "🙂🙂🙂🙂🙂", "🙂", "👩‍👩‍👧‍👦", "አማርኛ ቋንቋ", "日本の首都は", "한국어", "한국어", "ﬁne", "¼",
         "Ωmega", "  two", "\n", "\n\n", "\t", "x" * 30, "नदी चौड़ी", "שָׁלוֹם", "1,234", "don't", "²", "\u200b", "ắ", "ắ", "Å"]


def folders(data):
    packed = lambda name: lzma.decompress((data / "tokenizers/hf-json" / f"{name}.json.xz").read_bytes())
    model = lambda name: (data / "tokenizers/sentencepiece" / name).read_bytes()
    fast, llama = {"tokenizer_class": "PreTrainedTokenizerFast"}, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}
    ends = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return {
        "mistral-7b tokenizer.json": ({"tokenizer.json": packed("mistral-7b")}, {**fast, **ends}, INST),
        "llama2 tokenizer.model": ({"tokenizer.model": model("llama2.model")}, {**llama, **ends, "legacy": False}, INST),
        "mistral-7b tokenizer.model": ({"tokenizer.model": model("mistral-7b.model")}, {**llama, **ends, "legacy": False}, INST),
        "qwen2.5": ({"tokenizer.json": packed("qwen2.5")}, {**fast, "eos_token": "<|im_end|>"}, CHATML),
        "gpt-neox-20b": ({"tokenizer.json": packed("gpt-neox-20b")}, {**fast, "eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"}, INST),
        "dolma2": ({"tokenizer.json": packed("dolma2-cl100k")}, {**fast, "eos_token": "<|im_end|>"}, CHATML)}


def conversation(rng):
    say = lambda: " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12))).strip() or "a"
    return [{"role": role, "content": say()} for _ in range(rng.randint(1, 3)) for role in ("user", "assistant")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("encode_records")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    options = parser.parse_args()
    failed = 0
    for name, (files, config, template) in folders(options.data).items():
        rng = random.Random(f"{name} {options.seed}")
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for file, contents in files.items():
                (folder / file).write_bytes(contents)
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            (folder / "chat_template.jinja").write_text(template)
            peer = transformers.AutoTokenizer.from_pretrained(folder)
            rows = [conversation(rng) for _ in range(options.records)]
            (folder / "rows.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
            done = subprocess.run([options.encode_records, "--tokenizer", folder, "--data-path", folder / "rows.jsonl"], capture_output=True, text=True)
            assert done.returncode == 0, (name, done.stderr)
            ids = masks = 0
            first = None
            for row, line in zip(rows, done.stdout.splitlines(), strict=True):
                got = json.loads(line)
                expected = peer.apply_chat_template(row, chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
                if got["ids"] != expected["input_ids"]:
                    ids += 1
                elif got["loss_mask"] != expected["assistant_masks"]:
                    masks += 1
                else:
                    continue
                first = first or (row, got["ids"], got["loss_mask"], expected["input_ids"], expected["assistant_masks"])
            print(f"{name:28}{len(rows):6} conversations{ids:6} other ids{masks:6} other masks", flush=True)
            if first:
                print(*map(ascii, first), sep="\n    ")
            failed += ids + masks
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
