#!/usr/bin/env python3
"""Writes tests/golden/tokenizer_fuzz.json: random texts, and for every vocabulary of the shared data
folder a hash of what its reference makes of each text: the ids in every mode, divided by -1, and the
text that the ids of the first mode give. Needs the Python packages sentencepiece, tiktoken and
tokenizers.

    python3 tools/golden/tokenizer_fuzz.py SHARED_DATA"""
import json
import pathlib
import random
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/long"))
import fuzz_text  # noqa: E402
import reference_tokenizers  # noqa: E402

TEXTS = 340


def fingerprint(ids, text):
    """The upper half of FNV-1a over the ids as little-endian numbers, then the text."""
    value = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(ids)}i", *ids) + text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value >> 32:08x}"


def answers(reference, texts):
    by_mode = [encode(texts) for _, encode in reference.modes.values()]
    decoded = reference.decode(by_mode[0])
    found = []
    for i, text in enumerate(decoded):
        ids = by_mode[0][i]
        for other in by_mode[1:]:
            ids = [*ids, -1, *other[i]]
        found.append(fingerprint(ids, text))
    return {"modes": list(reference.modes), "fingerprints": found}


def main():
    data = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        made = {name: make() for name, make in reference_tokenizers.makers(data, scratch).items()}
        special = sorted({token for reference in made.values() for token in reference.special[:8]})
        texts = fuzz_text.TextMaker(random.Random(7), special).texts(TEXTS)
        result = {}
        for name, reference in made.items():
            packed = sorted((data / "tokenizers").rglob(f"{name}*"))
            source = packed[0].relative_to(data / "tokenizers").as_posix() if packed else name
            result[source] = answers(reference, texts)
    golden = {"texts": texts, "tokenizers": result}
    (ROOT / "tests/golden/tokenizer_fuzz.json").write_text(
        json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
