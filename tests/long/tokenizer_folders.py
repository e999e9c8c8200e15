#!/usr/bin/env python3
"""Folders of Hugging Face files beside transformers: added_tokens.json, special_tokens_map.json and tokenizer_config.json with
a tokenizer.json, a vocab.json with merges.txt, a vocab.txt or a tokenizer.model; random texts, ids compared, with special tokens
around them and without.

    build/oracle/bin/python tests/long/tokenizer_folders.py BLOOMERY [--texts N] [--data DIR]"""
import argparse
import json
import lzma
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import transformers

import fuzz_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIAL = ["<|im_end|>", "<|x1|>", "<|x2|>", " <|pad|>", "<|tool|>", "<|a1|>", "<|a2|>", "<new>", "[MASK]", "<pad>", "<|endoftext|>"]


def token(content, **flags):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
            **flags}


# The files of each folder, and what is written beside them: tokenizer_config.json, special_tokens_map.json, added_tokens.json.
def folders(data):
    neox = {"tokenizer.json": lzma.decompress((data / "hf-json/gpt-neox-20b.json.xz").read_bytes())}
    gpt2 = {"vocab.json": (data / "gpt2/gpt2-vocab.json").read_bytes(), "merges.txt": (data / "gpt2/gpt2-merges.txt").read_bytes()}
    llama = {"tokenizer.model": (data / "sentencepiece/llama2.model").read_bytes()}
    ends = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True}
    mistral = {"tokenizer.json": lzma.decompress((data / "hf-json/mistral-7b.json.xz").read_bytes())}
    bert = {"vocab.txt": (data / "bert/bert-base-uncased-vocab.txt").read_bytes()}
    decoder = {"50300": {**token("<|x2|>"), "special": True}, "50290": {**token("<|x1|>", normalized=True), "special": False}}
    return {
        "tokens of the configuration": (neox, {
            "eos_token": "<|im_end|>", "pad_token": token("<|pad|>", lstrip=True), "additional_special_tokens": ["<|tool|>"],
            "added_tokens_decoder": decoder}, None, None),
        "special_tokens_map.json": (neox, {}, {"eos_token": "<|im_end|>", "additional_special_tokens": ["<|tool|>"]},
                                    {"<|a2|>": 50278, "<|a1|>": 50277}),
        "vocab.json and merges.txt": (gpt2, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "pad_token": "<pad>"}, None,
                                      {"<|a2|>": 50258, "<|a1|>": 50257}),
        "vocab.json with bos": (gpt2, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "<|endoftext|>"}, None, None),
        "tokenizer.json with <s>": (mistral, {"bos_token": "<s>", "eos_token": "</s>"}, None, None),
        "tokenizer.model": (llama, {**ends, "legacy": False}, None, None),
        "tokenizer.model with eos": (llama, {**ends, "legacy": False, "add_bos_token": False, "add_eos_token": True}, None, None),
        "tokenizer.model, more tokens": (llama, {**ends, "legacy": False, "eos_token": "<|im_end|>", "additional_special_tokens": ["<|tool|>"]},
                                         None, None),
        "vocab.txt": (bert, {"tokenizer_class": "BertTokenizer", "do_lower_case": False}, None, {"<new>": 30522}),
        "vocab.txt with settings": (bert, {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": False,
                                           "tokenize_chinese_chars": False}, None, None)}


def write(folder, files, config, special, added):
    folder.mkdir()
    for name, contents in files.items():
        (folder / name).write_bytes(contents)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    for name, contents in {"tokenizer_config": config, "special_tokens_map": special, "added_tokens": added}.items():
        if contents is not None:
            (folder / f"{name}.json").write_text(json.dumps(contents))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, contents in folders(options.data / "tokenizers").items():
            folder = pathlib.Path(scratch) / "folder"
            shutil.rmtree(folder, ignore_errors=True)
            write(folder, *contents)
            peer = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
            texts = fuzz_text.TextMaker(random.Random(name), SPECIAL).texts(options.texts)
            if "tokenizer.model" in contents[0]:  # LlamaTokenizer of transformers 5 cuts runs of spaces, and those at the start, unlike SentencePiece
                texts = [re.sub("[ \u2581]+", " ", t).lstrip() for t in texts]
            for special in (False, True):
                answer = subprocess.run([options.bloomery, "tokenizer", "encode", "--tokenizer", folder, "--jsonl",
                                         *["--add-special-tokens"] * special], check=True,
                                        input="\n".join(map(json.dumps, texts)) + "\n", stdout=subprocess.PIPE, encoding="utf-8")
                expected = [str(e.ids) for e in peer.encode_batch(texts, add_special_tokens=special)]
                differ = [t for t, e, a in zip(texts, expected, answer.stdout.splitlines(), strict=True) if e != a]
                print(f"{name:32}{len(texts):8} texts{len(differ):6} differ", *map(ascii, differ[:1]), flush=True)
                failed += len(differ)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
