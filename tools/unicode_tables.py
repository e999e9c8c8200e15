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
            high, low = divmod(class_of[first], 20)
            words.append(length + ("" if high == 0 else chr(ord("a") + high - 1)) + chr(ord("G") + low))
            first = code
    return words


def set_entry(name, members, category_of):
    """An entry of kCharacterSets: the categories most of which belong to the set, and where it differs."""
    counts = [[0, 0] for _ in CATEGORIES]
    is_in = [0] * 0x110000
    for c in members:
        is_in[c] = 1
    for c in range(0x110000):
        counts[category_of[c]][is_in[c]] += 1
    chosen = {i for i, (outside, inside) in enumerate(counts) if inside > outside}
    differs = [int((category_of[c] in chosen) != is_in[c]) for c in range(0x110000)]
    if len(runs(differs)) > len(runs(is_in)):
        chosen, differs = set(), is_in
    names = " ".join(CATEGORIES[i].lower() for i in sorted(chosen))
    return f'    {{"{name}", "{names}",\n{literal(runs(differs), 92)}}},\n'


# The general categories, in the order of properties.cpp; the last has
# what is in no other. TIKTOKEN_CLASSES are those that both references must
# agree about.
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co "
              "Cn").split()
TIKTOKEN_CLASSES = [r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{Nd}",
                    r"[\p{Nl}\p{No}]", r"\p{P}", r"\p{S}", r"\s"]
# The largest come first: every character that has its script is not asked about again.
SCRIPTS = """Unknown Han Hangul Common Yi Tangut Egyptian_Hieroglyphs Latin Arabic Cuneiform Bamum Ethiopic
Inherited Cyrillic Greek Canadian_Aboriginal Anatolian_Hieroglyphs Khitan_Small_Script Nushu Hiragana
Katakana SignWriting Adlam Ahom Armenian Avestan Balinese Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
Brahmi Braille Buginese Buhid Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Coptic
Cypriot Cypro_Minoan Deseret Devanagari Dives_Akuru Dogra Duployan Elbasan Elymaic Garay Georgian
Glagolitic Gothic Grantha Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Hanifi_Rohingya Hanunoo Hatran
Hebrew Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kawi
Kayah_Li Kharoshthi Khmer Khojki Khudawadi Kirat_Rai Lao Lepcha Limbu Linear_A Linear_B Lisu Lycian
Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek
Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal
Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian
Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician
Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian
Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet
Takri Tamil Tangsa Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari Ugaritic
Vai Vithkuqi Wancho Warang_Citi Yezidi Zanabazar_Square""".split()
# Properties that are not unions of categories. "word" is \w.
PROPERTIES = {"alphabetic": r"\p{Alphabetic}", "uppercase": r"\p{Uppercase}",
              "lowercase": r"\p{Lowercase}", "word": r"\w", "emoji": r"\p{Emoji}",
              "emojipresentation": r"\p{Emoji_Presentation}",
              "extendedpictographic": r"\p{Extended_Pictographic}",
              "ideographic": r"\p{Ideographic}"}
TEXT = "".join(map(chr, CHARACTERS))


def matched(pattern, text=TEXT):
    split = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed", invert=True)
    return {ord(c) for part, _ in split.pre_tokenize_str(text) for c in part}


def matched_by_tiktoken(pattern):
    import tiktoken

    bytewise = tiktoken.Encoding("bytes", pat_str=pattern, special_tokens={},
                                 mergeable_ranks={bytes([i]): i for i in range(256)})
    found = set()
    for at in range(0, len(TEXT), 100_000):
        found.update(map(ord, bytes(bytewise.encode_ordinary(TEXT[at : at + 100_000])).decode()))
    return found


def check_tiktoken():
    for pattern in TIKTOKEN_CLASSES:
        try:
            same = matched(pattern) == matched_by_tiktoken(pattern)
        except ImportError:
            print("tiktoken is not installed; not compared")
            return
        assert same, f"tiktoken disagrees about {pattern}"


def partition(patterns, otherwise):
    """The number of the first pattern that matches each character; `otherwise` where none does."""
    class_of, left = [otherwise] * 0x110000, TEXT
    for number, pattern in enumerate(patterns):
        codes = matched(pattern, left)
        for code in codes:
            class_of[code] = number
        left = "".join(c for c in left if ord(c) not in codes)
    return class_of


def case_groups():
    """Characters that stand for each other where case does not matter."""
    cased = [c for c in CHARACTERS if len({chr(c), chr(c).lower(), chr(c).upper(), chr(c).casefold()}) > 1]
    groups, text = {}, "\n".join(map(chr, cased))
    for c in cased:
        if c in groups:
            continue
        members = {c} | matched(f"(?i:\\x{{{c:X}}})", text)
        for member in members:
            groups[member] = sorted(members)
    unique = {tuple(g) for g in groups.values() if len(g) > 1}
    return {g[0]: g[1:] for g in unique}


def write_properties():
    check_tiktoken()
    category_of = partition([rf"\p{{{c}}}" for c in CATEGORIES], len(CATEGORIES) - 1)
    (ROOT / "unicode/category_runs.h").write_text(
        NOTE + "#pragma once\n\nnamespace bloomery::detail {\n\ninline constexpr char kCategoryRuns[] =\n"
        + literal(runs(category_of))
        + ";\n\n}  // namespace bloomery::detail\n")
    scripts = [s.replace("_", "").lower() for s in SCRIPTS]
    write("unicode/property_tables.cpp", "tokenizer/unicode/property_tables.h", [
        table("kScriptNames", [s + " " for s in scripts]),
        table("kScriptRuns", runs(partition([rf"\p{{{s}}}" for s in SCRIPTS], 0))),
        "const CharacterSetData kCharacterSets[] = {\n" + "".join(
            set_entry(name, members, category_of) for name, members in
            ({n: matched(p) for n, p in PROPERTIES.items()} | hf_classes() | grapheme_classes()).items())
        + "    {nullptr, nullptr, nullptr},\n};\n",
        entry_table("kCaseGroups", case_groups()),
        entry_table("kLongFolds", {c: list(map(ord, chr(c).casefold())) for c in CHARACTERS
                                   if len(chr(c).casefold()) > 1})])


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
        "hf marks": removed(normalizers.StripAccents()),
        "bert accents": removed(bert(strip_accents=True)),
        "bert controls": removed(bert(clean_text=True)),
        "hf punctuation": split_off(pre_tokenizers.Punctuation("isolated")),
        "hf numbers": split_off(pre_tokenizers.Digits(individual_digits=True)),
        "hf word": [c for c in CHARACTERS
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
    return {"grapheme controls": controls, "grapheme extends": extends,
            "grapheme prepends": prepends, "conjunct consonants": consonants,
            "conjunct linkers": linkers, "hf pictographs": pictographs}


def main():
    write_properties()
    write_normal_forms()


if __name__ == "__main__":
    main()
