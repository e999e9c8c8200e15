#!/usr/bin/env python3
"""Writes the tables of `data clean`: what ftfy knows of broken text, and HTML 5's names of characters.

    pip install ftfy
    python3 tools/repair_tables.py  # src/text/filter/mojibake_tables.cpp and entity_names.cpp
"""
import html.entities
import pathlib
import re
import subprocess
import textwrap

import ftfy
import ftfy.bad_codecs  # noqa: F401  sloppy encodings
from ftfy import badness, chardata

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "src/text/filter"
CATEGORIES = ["common", "c1", "bad", "law", "currency", "start_punctuation", "end_punctuation", "numeric", "kaomoji", "upper_accented",
              "lower_accented", "upper_common", "lower_common", "box"]
CLUES = ["utf8_first_of_2", "utf8_first_of_3", "utf8_first_of_4", "utf8_continuation", "utf8_continuation_strict"]


def write(name, body):
    text = f'// Made by tools/repair_tables.py; do not edit.\n#include "text/filter/{body[0]}"\n\nnamespace bloomery {{\n{body[1]}\n}}  // namespace bloomery\n'
    path = FOLDER / name
    path.write_text(subprocess.run(["clang-format", f"--assume-filename={path}"], input=text, capture_output=True, text=True, check=True).stdout)


def filled(items, separator=", "):
    return textwrap.fill(separator.join(items), 98, break_long_words=False, break_on_hyphens=False)


def encodings():
    rows = []
    for name in chardata.CHARMAP_ENCODINGS:
        codes = [ord(c) for c in bytes(range(0x80, 0x100)).decode(name)]
        rows.append(f"    {{\"{name}\", {str(name.startswith('sloppy')).lower()}, {{{filled([f'0x{c:X}' for c in codes])}}}}}")
    return "const SingleByteEncoding kEncodings[10] = {\n" + ",\n".join(rows) + "};\n"


def categories():
    patterns = [re.compile(f"[{badness.MOJIBAKE_CATEGORIES[name]}]") for name in CATEGORIES]
    patterns += [re.compile(f"[{chardata.UTF8_CLUES[name]}]") for name in CLUES]
    runs = []
    for code in range(0x20, 0x10000):
        if 0xD800 <= code < 0xE000:
            continue
        bits = sum(1 << i for i, pattern in enumerate(patterns) if pattern.match(chr(code)))
        if bits and runs and runs[-1][1] == code - 1 and runs[-1][2] == bits:
            runs[-1][1] = code
        elif bits:
            runs.append([code, code, bits])
    rows = filled([f"{{0x{first:X}, 0x{last:X}, 0x{bits:X}}}" for first, last, bits in runs])
    return f"const MojibakeRange kRanges[] = {{\n{rows}}};\n"


def entities():
    """name=HEX[+HEX]; in front of a name * says that its capitals stand for the same."""
    table = {name[1:-1]: value for name, value in chardata.HTML_ENTITIES.items()}
    own = {name[:-1] for name in html.entities.html5 if name.endswith(";")}
    rows = []
    for name, value in sorted(table.items()):
        upper = name.upper()
        if name not in own and table.get(name.lower()) == value:
            continue  # said by the *
        same = name in own and upper not in own and table.get(upper) == value and name == name.lower()
        rows.append(("*" if same else "") + name + "=" + "+".join(f"{ord(c):X}" for c in value))
    return 'const std::string_view kEntityNames = R"names(\n' + filled(rows, " ") + ')names";\n'


write("mojibake_tables.cpp", ("mojibake_tables.h", f"// Of ftfy {ftfy.__version__} (Apache licence).\n" + encodings() + "namespace {\n" + categories() + "}\n"
                              "const std::span<const MojibakeRange> kMojibakeRanges = kRanges;\n"))
write("entity_names.cpp", ("entity_names.h", entities()))
