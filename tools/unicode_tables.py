#!/usr/bin/env python3
"""Writes the Unicode tables of src/tokenizer by asking Hugging Face tokenizers (0.23) about every
character, so that they are those of the reference whatever Unicode versions it was built with.
tiktoken is checked to agree about the classes of patterns when it is installed.

    python3 tools/unicode_tables.py
"""
import pathlib
import struct
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src/tokenizer"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xAC00 + 11172)
NOTE = "// Made by tools/unicode_tables.py from Hugging Face tokenizers 0.23; not edited by hand.\n"


def literal(words, width=94):
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(f'    "{line}"' for line in lines)


def table(name, words):
    return f"const char* const {name} =\n{literal(words)};\n"


def write(path, header, tables):
    text = f'{NOTE}#include "{header}"\n\nnamespace bloomery {{\n\n'
    (ROOT / path).write_text(text + "\n".join(tables) + "\n}  // namespace bloomery\n")


# Text of runs (unicode/run_text.h).


def runs(class_of):
    """The lengths and classes of the runs of equal classes that make up all characters."""
    words, first = [], 0
    for code in range(1, 0x110001):
        if code == 0x110000 or class_of[code] != class_of[first]:
            length = f"{code - first:X}" if code - first > 1 else ""
            words.append(length + chr(ord("G") + class_of[first]))
            first = code
    return words


def set_table(name, members):
    class_of = [0] * 0x110000
    for c in members:
        class_of[c] = 1
    return table(name, runs(class_of))


# In the order of enum class CharClass; the first is for everything that no pattern matches.
PATTERNS = [r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{Nd}",
            r"[\p{Nl}\p{No}]", r"\p{P}", r"\p{S}", r"\s"]
TEXT = "".join(map(chr, CHARACTERS))


def matched(pattern):
    left = set()
    for part, _ in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(TEXT):
        left.update(map(ord, part))
    return set(CHARACTERS) - left


def matched_by_tiktoken(pattern):
    import tiktoken

    bytewise = tiktoken.Encoding("bytes", pat_str=pattern, special_tokens={},
                                 mergeable_ranks={bytes([i]): i for i in range(256)})
    found = set()
    for at in range(0, len(TEXT), 100_000):
        found.update(map(ord, bytes(bytewise.encode_ordinary(TEXT[at : at + 100_000])).decode()))
    return found


def write_pattern_classes():
    class_of = [0] * 0x110000
    for number, pattern in enumerate(PATTERNS, 1):
        codes = matched(pattern)
        try:
            assert codes == matched_by_tiktoken(pattern), f"tiktoken disagrees about {pattern}"
        except ImportError:
            print(f"{pattern}: tiktoken is not installed; not compared")
        for code in codes:
            assert class_of[code] == 0, f"U+{code:04X} is in two classes"
            class_of[code] = number
    (ROOT / "unicode/class_runs.h").write_text(
        NOTE + "#pragma once\n\nnamespace bloomery::detail {\n\ninline constexpr char kClassRuns[] =\n"
        + literal(runs(class_of)) + ";\n\n}  // namespace bloomery::detail\n")


# Text of entries (unicode/normalize_tables.h).


def changed(normalizer):
    """What the normalizer makes of each character that it changes."""
    results = ((c, normalizer.normalize_str(chr(c))) for c in CHARACTERS)
    return {c: text for c, text in results if text != chr(c)}


def entry_table(name, entries, marked=()):
    words, before = [], 0
    for c, values in sorted(entries.items()):
        distance = "" if c - before == 1 else f"{c - before:X}:"
        words.append(distance + "-" * (c in marked) + " ".join(f"{v:X}" for v in values) + ";")
        before = c
    return table(name, words)


def combining_classes(decompose):
    def reorders(first, second):
        return decompose.normalize_str(first + second) == second + first

    found = {}
    for c in CHARACTERS:
        if unicodedata.combining(chr(c)) and decompose.normalize_str(chr(c)) == chr(c):
            if reorders(chr(c), "\u0334") or reorders("\u0345", chr(c)):
                found[c] = unicodedata.combining(chr(c))
    found[0x345] = 240
    return found


def lowercase_runs(lower):
    """Runs of characters at one distance whose lowercase lies equally far: start, count, step,
    distance + 0x20000."""
    runs = []
    for c, text in sorted(lower.items()):
        if len(text) != 1:
            continue
        shift = ord(text) - c
        if runs:
            start, count, step, before = runs[-1]
            last = start + (count - 1) * step
            if shift == before and (count == 1 and c - last <= 2 or count > 1 and c - last == step):
                runs[-1] = [start, count + 1, c - last, shift]
                continue
        runs.append([c, 1, 1, shift])
    return {start: [count, step, shift + 0x20000] for start, count, step, shift in runs}


def write_normal_forms():
    compose, decompose = normalizers.NFC(), normalizers.NFD()
    full = {c: t for c, t in changed(decompose).items() if c not in HANGUL}
    canonical, never_composed = {}, set()
    for c, parts in full.items():
        if compose.normalize_str(chr(c)) == chr(c):
            first = compose.normalize_str(parts[:-1])
            assert full.get(ord(first), first) == parts[:-1]
            canonical[c] = [ord(first), ord(parts[-1])]
        else:
            canonical[c] = list(map(ord, parts))
            if len(parts) > 1:
                never_composed.add(c)
    compatible = {c: list(map(ord, text)) for c, text in changed(normalizers.NFKD()).items()
                  if c not in HANGUL and full.get(c) != text}
    combining = {c: [value] for c, value in combining_classes(decompose).items()}
    lower = lowercase_runs(changed(normalizers.Lowercase()))
    write("unicode/normalize_tables.cpp", "tokenizer/unicode/normalize_tables.h", [
        entry_table("kCanonicalDecompositions", canonical, never_composed),
        entry_table("kCompatibilityDecompositions", compatible),
        entry_table("kCombiningClasses", combining), entry_table("kLowercaseRuns", lower)])


def hf_classes():
    removed = lambda n: [c for c, text in changed(n).items() if text == ""]
    split_off = lambda p: [c for c in CHARACTERS if len(p.pre_tokenize_str("a" + chr(c))) == 2]
    bert = lambda **chosen: normalizers.BertNormalizer(
        **{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False,
           "lowercase": False, **chosen})
    words = pre_tokenizers.Whitespace()
    return {
        "kCombiningMarks": removed(normalizers.StripAccents()),
        "kBertNonspacing": removed(bert(strip_accents=True)),
        "kBertControls": removed(bert(clean_text=True)),
        "kPunctuation": split_off(pre_tokenizers.Punctuation("isolated")),
        "kNumeric": split_off(pre_tokenizers.Digits(individual_digits=True)),
        "kWordCharacters": [c for c in CHARACTERS
                            if words.pre_tokenize_str("a" + chr(c))[0][0] == "a" + chr(c)],
    }


def one_rule(key):
    """A Precompiled normalizer whose only rule replaces `key` by X. It replaces a short grapheme
    cluster as a whole, which shows where clusters end."""
    units = [0] * 2048
    units[0] = 256 << 10
    node = 256
    for i, byte in enumerate(key.encode()):
        node ^= byte
        next_block = 256 * (i + 2)
        is_last = i + 1 == len(key.encode())
        units[node] = byte | is_last << 8 | (node ^ next_block) << 10
        node = next_block
    units[node] = 1 << 31
    return normalizers.Precompiled(struct.pack("<2049I", 8192, *units) + b"X\0")


def grapheme_classes():
    accent = "\u0301"
    of = {c: one_rule(chr(c)) for c in CHARACTERS if 0 < c < 0x10000}
    plain = of[ord("a")]
    controls = {c for c in of if c != 0x301
                and of[c].normalize_str(chr(c) + accent) != "X"}
    extends = {c for c in CHARACTERS if plain.normalize_str("a" + chr(c)) == "X"}
    prepends = {c for c in CHARACTERS if c != ord("a")
                and plain.normalize_str(chr(c) + "a" + accent) != chr(c) + "X"}
    consonants = {c for c in of if c not in controls | extends | prepends
                  and of[c].normalize_str("\u0915\u094D" + chr(c) + accent).endswith("X" + accent)}
    linkers = {c for c in extends
               if of[0x915].normalize_str("\u0916" + chr(c) + "\u0915" + accent).endswith("X" + accent)}
    pictographs = {c for c in CHARACTERS if c not in prepends
                   and of[0x2122].normalize_str(chr(c) + "\u200D\u2122" + accent).endswith("X" + accent)}
    return {"kGraphemeControls": controls, "kGraphemeExtends": extends,
            "kGraphemePrepends": prepends, "kConjunctConsonants": consonants,
            "kConjunctLinkers": linkers, "kPictographs": pictographs}


write_pattern_classes()
write_normal_forms()
write("hf/char_class_tables.cpp", "tokenizer/hf/char_class_tables.h",
      [set_table(name, members) for name, members in (hf_classes() | grapheme_classes()).items()])
