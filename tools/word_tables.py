#!/usr/bin/env python3
"""Writes src/text/filter/word_tables.cpp: what spaCy's English tokenizer knows of characters and words.

    pip install spacy
    python3 tools/word_tables.py | clang-format > src/text/filter/word_tables.cpp
"""
import re
import textwrap

import spacy
from spacy.lang import char_classes as classes


def runs(pattern):
    found = []
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000 and pattern.match(chr(code)):
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return found


def lines(items, separator=", "):
    return textwrap.fill(separator.join(items), 96, initial_indent="    ", subsequent_indent="    ", break_long_words=False)


def ranges(name, what, characters):
    pairs = [f"{{0x{first:X}, 0x{last:X}}}" for first, last in runs(re.compile(f"[{characters}]"))]
    return f"// {what}\nconst CodeRange {name}Ranges[] = {{\n{lines(pairs)}}};\n"


def singles(listed):
    """Those that are one character, sorted; the others are in words.cpp."""
    characters = {piece.replace("\\", "") for piece in listed}
    return sorted(c for c in characters if len(c) == 1)


def characters(name, listed):
    text = lines([f"0x{ord(c):X}" for c in singles(listed)])
    return f"const char32_t {name}Characters[] = {{\n{text}}};\n"


def literal(text):
    return 'R"words(\n' + textwrap.fill(text, 98, break_long_words=False, break_on_hyphens=False) + ')words"'


def main():
    rules = spacy.blank("en").tokenizer.rules
    words = sorted("~".join(part[65] if 65 in part else part["ORTH"] for part in parts)
                   for word, parts in rules.items() if not re.search(r"\s|\xa0", word))
    print("// Made by tools/word_tables.py from spaCy " + spacy.__version__ + " (MIT licence); do not edit.")
    print('#include "text/filter/word_tables.h"\n\nnamespace bloomery {\nnamespace {\n')
    print(ranges("kAlpha", "ALPHA", classes.ALPHA))
    print(ranges("kIcon", "ICONS", classes.CONCAT_ICONS))
    print(characters("kPunctuation", classes.LIST_PUNCT))
    print(characters("kQuote", classes.LIST_QUOTES))
    print(characters("kCurrency", classes.LIST_CURRENCY))
    print("}  // namespace\n")
    for name in ("Alpha", "Icon"):
        print(f"const std::span<const CodeRange> k{name} = k{name}Ranges;")
    for name in ("Punctuation", "Quote", "Currency"):
        print(f"const std::span<const char32_t> k{name} = k{name}Characters;")
    print("\nconst std::string_view kUnits = " + literal(" ".join(classes.LIST_UNITS)) + ";\n")
    print("const std::string_view kSpecialWords = " + literal(" ".join(words)) + ";\n")
    print("}  // namespace bloomery")


main()
