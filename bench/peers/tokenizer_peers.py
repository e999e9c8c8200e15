#!/usr/bin/env python3
"""`bloomery bench tokenizer` beside Hugging Face tokenizers or tiktoken: the same files on one core in one run, each
file encoded once per repeat with a cold cache (the best repeat counts), ids compared.

The peer is chosen by the tokenizer: a tokenizer.json, a vocab.txt or vocab.json with merges.txt is read by Hugging Face
tokenizers, GPT-2's files by tiktoken as well, a rank file by tiktoken, a SentencePiece model by sentencepiece.
Usage: tokenizer_peers.py --bloomery build/cpu/bloomery (--tokenizer FILE | --vocab-file F --merge-file F)
                          [--repeats N] --input FILE..."""
import argparse
import base64
import json
import os
import subprocess
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def fingerprint(ids):
    value = 0xCBF29CE484222325
    for token in ids:
        value = (value ^ token) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def hugging_face(arguments):
    import tokenizers

    def load():
        if arguments.tokenizer:
            made = tokenizers.Tokenizer.from_file(arguments.tokenizer)
            made.encode_special_tokens = True
        else:
            made = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(arguments.vocab_file, arguments.merge_file))
            made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        return made

    # The word cache belongs to the object: a new one is cold.
    return "tokenizers " + tokenizers.__version__, load, lambda made, text: made.encode(text, add_special_tokens=False).ids


def bert(arguments):
    import tokenizers

    def load():
        with open(arguments.tokenizer, encoding="utf-8") as file:
            lower = "A\n" not in file
        return tokenizers.BertWordPieceTokenizer(arguments.tokenizer, lowercase=lower)

    return "tokenizers " + tokenizers.__version__, load, lambda made, text: made.encode(text, add_special_tokens=False).ids


def sentencepiece_peer(arguments):
    import sentencepiece

    made = sentencepiece.SentencePieceProcessor(model_file=arguments.tokenizer)
    return "sentencepiece " + sentencepiece.__version__, lambda: made, lambda model, text: model.encode(text)


def peers_of(arguments):
    if not arguments.tokenizer:
        return [hugging_face(arguments), tiktoken_peer(arguments)]
    with open(arguments.tokenizer, "rb") as file:
        start = file.read(1 << 16)
    if start.startswith(b"{"):
        return [hugging_face(arguments)]
    if b"\0" in start or not arguments.tokenizer.endswith((".txt", ".tiktoken")):
        return [sentencepiece_peer(arguments)]
    return [bert(arguments) if arguments.tokenizer.endswith(".txt") else tiktoken_peer(arguments)]


def tiktoken_ranks(arguments):
    if arguments.tokenizer:
        with open(arguments.tokenizer, "rb") as file:
            return {base64.b64decode(word): int(rank) for word, rank in map(bytes.split, filter(None, file.read().splitlines()))}
    printable = [b for b in range(256) if 33 <= b <= 126 or b >= 161 and b != 173]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    with open(arguments.vocab_file, encoding="utf-8") as file:
        vocabulary = json.load(file)
    vocabulary.pop("<|endoftext|>", None)
    return {bytes(byte_of[c] for c in piece): rank for piece, rank in vocabulary.items()}


def tiktoken_peer(arguments):
    import tiktoken
    from tiktoken_ext import openai_public

    ranks = tiktoken_ranks(arguments)
    pattern = openai_public.r50k_pat_str
    if len(ranks) in (100256, 199998):
        openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
        pattern = (openai_public.cl100k_base() if len(ranks) == 100256 else openai_public.o200k_base())["pat_str"]
    made = tiktoken.Encoding("peer", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return "tiktoken " + tiktoken.__version__, lambda: made, lambda encoding, text: encoding.encode_ordinary(text)


def time_peer(load, encode, text, repeats):
    best, ids = float("inf"), None
    for _ in range(repeats):
        made = load()
        start = time.perf_counter()
        ids = encode(made, text)
        best = min(best, time.perf_counter() - start)
    return best, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bloomery", required=True)
    parser.add_argument("--tokenizer")
    parser.add_argument("--vocab-file")
    parser.add_argument("--merge-file")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--input", nargs="+", required=True)
    arguments = parser.parse_args()
    if arguments.tokenizer:
        ours = ["--tokenizer", arguments.tokenizer]
    else:
        ours = ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", arguments.vocab_file, "--merge-file", arguments.merge_file]
    peers = peers_of(arguments)
    print(f"{'file':<24}{'MB':>7}{'bloomery':>10}", *(f"{name:>20}{'ratio':>8}" for name, _, _ in peers), "  MB/s, ids")
    for path in arguments.input:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        size = len(text.encode()) / 1e6
        command = [arguments.bloomery, "bench", "tokenizer", *ours, "--json", "--repeats", str(arguments.repeats), "--input", path]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        row, equal = f"{os.path.basename(path)[:23]:<24}{size:>7.1f}{result['megabytes_per_second']:>10.1f}", True
        for _, load, encode in peers:
            seconds, ids = time_peer(load, encode, text, arguments.repeats)
            row += f" {size / seconds:>20.2f}{seconds / result['seconds']:>7.1f}x"
            equal = equal and fingerprint(ids) == result["fingerprint"]
        print(row, "  identical" if equal else "  DIFFERENT", flush=True)


main()
