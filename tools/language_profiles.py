#!/usr/bin/env python3
"""Writes src/text/language/profiles.cpp: the most frequent n-grams of letters of many languages, counted in the
translations of the Universal Declaration of Human Rights (shared/data/corpora/udhr).

    pip install regex
    python3 tools/language_profiles.py           # writes the file, from whole texts
    python3 tools/language_profiles.py --half    # from first halves, for a test on the second halves
"""
import collections
import json
import lzma
import math
import pathlib
import sys

import regex

ROOT = pathlib.Path(__file__).resolve().parent.parent
UDHR = ROOT.parent / "shared/data/corpora/udhr/udhr.jsonl.xz"
LONG, SHORT = 800, 60  # n-grams of a language that shares its script with others, and of one that does not
SHARED = {
    "eng": "en", "fra": "fr", "deu_1996": "de", "spa": "es", "por_PT": "pt", "ita": "it", "nld": "nl", "swe": "sv",
    "dan": "da", "nob": "no", "fin": "fi", "isl": "is", "pol": "pl", "ces": "cs", "slk": "sk", "slv": "sl", "hrv": "hr",
    "ron_2006": "ro", "hun": "hu", "lit": "lt", "lav": "lv", "est": "et", "tur": "tr", "vie": "vi", "ind": "id",
    "cat": "ca", "eus": "eu", "glg": "gl", "gle": "ga", "cym": "cy", "als": "sq", "mlt": "mt", "afr": "af", "swh": "sw",
    "tgl": "tl", "uzn_latn": "uz", "epo": "eo", "lat": "la", "rus": "ru", "ukr": "uk", "bul": "bg", "srp_cyrl": "sr",
    "mkd": "mk", "bel": "be", "kaz": "kk", "arb": "ar", "pes_1": "fa", "urd": "ur", "hin": "hi", "mar": "mr",
    "nep": "ne", "jpn": "ja", "cmn_hans": "zh",
}
ALONE = {
    "ell_monotonic": "el", "heb": "he", "ben": "bn", "tam": "ta", "tel": "te", "kan": "kn", "mal": "ml", "guj": "gu",
    "pan": "pa", "sin": "si", "tha": "th", "kor": "ko", "kat": "ka", "hye": "hy", "amh": "am", "khm": "km", "lao": "lo",
    "mya": "my",
}


def grams(text):
    for word in regex.sub(r"[^\p{L}\p{M}]+", " ", text.lower()).split():
        word = f"_{word}_"
        for n in range(1, 5):
            for i in range(len(word) - n + 1):
                if word[i:i + n] != "_":
                    yield word[i:i + n]


def profile(text, size):
    """N-grams by falling frequency; a number stands before those whose -4 ln p is that, rounded."""
    counts = collections.Counter(grams(text))
    total = sum(counts.values())
    words, level = [], None
    for gram, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]:
        next_level = round(-4 * math.log(count / total))
        if next_level != level:
            words.append(str(next_level))
            level = next_level
        words.append(gram)
    return " ".join(words)


def main():
    texts = {}
    with lzma.open(UDHR, "rt") as lines:
        for line in lines:
            entry = json.loads(line)
            texts[entry["code"]] = entry["text"]
    half = "--half" in sys.argv
    out = ['// Made by tools/language_profiles.py; not edited by hand.\n#include "text/language/profiles.h"\n',
           "namespace bloomery {\n\n// clang-format off\nconst LanguageProfile kLanguageProfiles[] = {"]
    for codes, size in ((SHARED, LONG), (ALONE, SHORT)):
        for code, name in codes.items():
            if code in texts:
                text = texts[code]
                out.append(f'  {{"{name}", "{profile(text[:len(text) // 2] if half else text, size)}"}},')
    out.append('  {nullptr, nullptr}};\n// clang-format on\n\n}  // namespace bloomery\n')
    target = ROOT / "src/text/language/profiles.cpp"
    target.write_text("\n".join(out))


main()
