#!/usr/bin/env python3
"""Writes the Unicode tables of src/tokenizer/{unicode,hf} by asking Hugging Face tokenizers about
every character, so that they are those of the reference whatever Unicode version it was built with.

    python3 tools/unicode/hf_tables.py

Needs the packages tokenizers (0.23) and unicodedata2 (for the values of combining classes)."""
import pathlib
import struct

import unicodedata2
from tokenizers import normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent / "src/tokenizer"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xAC00 + 11172)
NOTE = "// Made by tools/unicode/hf_tables.py from Hugging Face tokenizers 0.23; not edited by hand.\n"


def changed(normalizer):
    """What the normalizer makes of each character that it changes."""
    results = ((c, normalizer.normalize_str(chr(c))) for c in CHARACTERS)
    return {c: text for c, text in results if text != chr(c)}


def ranges(members):
    found = []
    for c in sorted(members):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def wrapped(words, indent, width=93):
    lines, line = [], indent
    for word in words:
        if len(line) + len(word) > width:
            lines.append(line)
            line = indent
        line += word
    return "\n".join(lines + [line])


def text_table(name, entries):
    """Hexadecimal numbers: the distance to the character before, then the values."""
    words, before = [], 0
    for c, values in sorted(entries.items()):
        words.append(" ".join(f"{v:X}" for v in [c - before, *values]) + ";")
        before = c
    body = wrapped(words, "").split("\n")
    return f"const char* const {name} =\n" + "\n".join(f'    "{line}"' for line in body) + ";\n"


def range_table(name, members):
    pairs = [f"{{0x{a:X}, 0x{b:X}}}, " for a, b in ranges(members)]
    pairs[-1] = pairs[-1][:-2] + "};"
    return f"const CharRange {name}[] = {{\n" + wrapped(pairs, "    ", 98) + "\n"


def combining_classes(decompose):
    def reorders(first, second):
        return decompose.normalize_str(first + second) == second + first

    found = {}
    for c in CHARACTERS:
        if unicodedata2.combining(chr(c)) and decompose.normalize_str(chr(c)) == chr(c):
            if reorders(chr(c), "\u0334") or reorders("\u0345", chr(c)):
                found[c] = unicodedata2.combining(chr(c))
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
    canonical = {c: t for c, t in changed(decompose).items() if c not in HANGUL}
    compatible = changed(normalizers.NFKD())
    composed = {}
    for c, parts in canonical.items():
        if compose.normalize_str(chr(c)) == chr(c):
            composed[c] = [ord(compose.normalize_str(parts[:-1])), ord(parts[-1])]
    numbers = lambda table: {c: list(map(ord, text)) for c, text in table.items()}
    canonical_only = numbers(canonical)
    compatible_only = {
        c: list(map(ord, text)) for c, text in compatible.items()
        if c not in HANGUL and canonical.get(c) != text
    }
    head = NOTE + '#include "tokenizer/unicode/normalize_tables.h"\n\nnamespace bloomery {\n\n'
    tail = "\n}  // namespace bloomery\n"
    (ROOT / "unicode/canonical_table.cpp").write_text(
        head + text_table("kCanonicalDecompositions", canonical_only) + "\n"
        + text_table("kCompositions", composed) + "\n"
        + text_table("kCombiningClasses", {c: [v] for c, v in combining_classes(decompose).items()})
        + tail)
    (ROOT / "unicode/compatibility_table.cpp").write_text(
        head + text_table("kCompatibilityDecompositions", compatible_only) + tail)
    lower = changed(normalizers.Lowercase())
    (ROOT / "unicode/lowercase_table.cpp").write_text(
        head + text_table("kLowercaseRuns", lowercase_runs(lower)) + tail)


def write_classes():
    removed = lambda n: [c for c, text in changed(n).items() if text == ""]
    split_off = lambda p: [c for c in CHARACTERS if len(p.pre_tokenize_str("a" + chr(c))) == 2]
    bert = lambda **chosen: normalizers.BertNormalizer(
        **{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False,
           "lowercase": False, **chosen})
    cleaned = changed(bert(clean_text=True))
    words = pre_tokenizers.Whitespace()
    tables = {
        "kCombiningMarks": removed(normalizers.StripAccents()),
        "kBertNonspacing": removed(bert(strip_accents=True)),
        "kBertControls": [c for c, text in cleaned.items() if text == ""],
        "kPunctuation": split_off(pre_tokenizers.Punctuation("isolated")),
        "kNumeric": split_off(pre_tokenizers.Digits(individual_digits=True)),
        "kWordCharacters": [c for c in CHARACTERS
                            if words.pre_tokenize_str("a" + chr(c))[0][0] == "a" + chr(c)],
    }
    head = NOTE + '#include "tokenizer/hf/char_class_tables.h"\n\nnamespace bloomery {\n\n'
    body = "\n".join(range_table(name, members) for name, members in tables.items())
    (ROOT / "hf/char_class_tables.cpp").write_text(head + body + "\n}  // namespace bloomery\n")
    print("\n".join(f"extern const CharRange {n}[{len(ranges(m))}];" for n, m in tables.items()))


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


def write_graphemes():
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
    tables = {"kGraphemeControls": controls, "kGraphemeExtends": extends,
              "kGraphemePrepends": prepends, "kConjunctConsonants": consonants,
              "kConjunctLinkers": linkers, "kPictographs": pictographs}
    head = NOTE + '#include "tokenizer/hf/grapheme_tables.h"\n\nnamespace bloomery {\n\n'
    body = "\n".join(range_table(name, members) for name, members in tables.items())
    (ROOT / "hf/grapheme_tables.cpp").write_text(head + body + "\n}  // namespace bloomery\n")
    print("\n".join(f"extern const CharRange {n}[{len(ranges(m))}];" for n, m in tables.items()))


write_normal_forms()
write_classes()
write_graphemes()
