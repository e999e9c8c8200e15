#!/usr/bin/env python3
"""The rules of `data filter` and the repairs of `data clean` beside those of datatrove (with spaCy's words) and ftfy, on random documents,
on web pages and on texts in many languages.

    pip install datatrove spacy ftfy
    python3 tests/long/corpus_rules.py build/bloomery [--golden tests/golden]

Prints how many documents each rule drops and how often the two differ; exits with 1 if they do. With --golden writes some of the
documents with what the others say: corpus_rules.json, corpus_words.json, repaired.json.
"""
import html.entities
import json
import lzma
import pathlib
import random
import subprocess
import sys
import tempfile

import ftfy
import ftfy.bad_codecs  # noqa: F401  sloppy encodings
from datatrove.data import Document
from datatrove.pipeline.filters import c4_filters, fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter
from datatrove.utils.text import split_into_words
from ftfy import badness, chardata

PAGES = "megatron-indexed/openwebtext-1000/openwebtext-1000.jsonl.xz"
LANGUAGES = "corpora/udhr/udhr.jsonl.xz"
SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared/data"
WORDS = "the be to of and that have with a in is it for on was as at by this from which or an are not time people year way day " \
        "government house water number part world city school power music red blue long small Iñtërnâtiôn naïve größe 2,000 1999 don't".split()
ENDS = [".", ".", ".", "!", "?", "...", "…", "", '"', "'", "。", ":"]
PIECES = list("()[]{}'\"“”‘’.,;:!?…-—–~/<>=+*^#&%$€£°@_|\\`´") + (
    "... .. -- --- US$ 's ’s km kg 5 10 3.5 ² ★ © http:// www. x.com a@b.org :80 /p?q=1 can't don’t e.g. U.S. p.m. 日本 й ß É :) :-( <3 0_0 "
    "word Word WORD well-known Mr. I'd it's o'clock 1.2.3.4 10:30 3-4 a,b end.Next").split()

c4_filters.split_into_sentences = lambda text, language=None: [text]


def lines_of(name):
    with lzma.open(SHARED / name, "rt") as lines:
        return [json.loads(line) for line in lines]


def sentence(draw, words):
    picked = draw.choices(words, k=draw.randint(1, 18))
    if draw.random() < 0.05:
        picked.append(draw.choice(["javascript", "Lorem Ipsum", "{", "[12]", "[edit]", "privacy policy", "x" * 1001, "#", "#", "•", "terms of use"]))
    return " ".join(picked) + draw.choice(ENDS)


def document(draw):
    kind = draw.random()
    words = draw.sample(WORDS, draw.randint(2, 6)) if kind < 0.15 else WORDS
    if kind > 0.9:
        words = ["".join(draw.choices("abcdefgh1234#@—", k=draw.randint(1, 14))) for _ in range(60)]
    lines = []
    for _ in range(draw.randint(1, 25)):
        line = " ".join(sentence(draw, words) for _ in range(draw.randint(1, 3)))
        if draw.random() < (0.9 if kind < 0.05 else 0.05):
            line = draw.choice(["- ", "• ", " -"]) + line
        lines += [line] * (draw.randint(2, 4) if draw.random() < 0.08 else 1)
    return draw.choice(["\n", "\n", "\n\n", " ", "\r\n"]).join(lines)


RULES = {
    "gopher-quality": gopher_quality_filter.GopherQualityFilter(),
    "gopher-repetition": gopher_repetition_filter.GopherRepetitionFilter(),
    "fineweb-quality": fineweb_quality_filter.FineWebQualityFilter(),
}


def judged(rule, text):
    result = rule.filter(Document(text=text, id="0"))
    return result is True, "" if result is True else result[1]


def ours(program, rules, texts):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "in.jsonl"
        source.write_text("".join(json.dumps({"i": i, "text": t}) + "\n" for i, t in enumerate(texts)))
        subprocess.run([program, "data", "filter", "--input", source, "--output", f"{folder}/out", "--rules", rules, "-q"],
                       check=True, stdout=subprocess.DEVNULL)
        return {d["i"]: d["text"] for d in map(json.loads, open(f"{folder}/out/in.jsonl"))}


def c4_differences(program, texts):
    """Without the rule about sentences, which are counted differently: what either side keeps is the same text."""
    wrong = 0
    for name, needs_end in (("c4", True), ("c4-any-line", False)):
        rule = c4_filters.C4QualityFilter(filter_no_terminal_punct=needs_end, min_num_sentences=-1)
        kept, different = ours(program, name, texts), 0
        for i, text in enumerate(texts):
            document = Document(text=text, id="0")
            passes = rule.filter(document) is True
            different += i in kept and (not passes or kept[i] != document.text)
        print(f"{name}: {different} of {len(kept)} kept differ")
        wrong += different
    return wrong


def repaired(program, texts):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "in.jsonl"
        source.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
        subprocess.run([program, "data", "clean", "--input", source, "--output", f"{folder}/out", "-q"],
                       check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line)["text"] for line in open(f"{folder}/out/in.jsonl")]


def broken(draw, text, encoding=None):
    try:
        return text.encode("utf-8").decode(encoding or draw.choice(chardata.CHARMAP_ENCODINGS))
    except UnicodeDecodeError:
        return text


def damaged(draw, text):
    """A paragraph with one kind of damage."""
    numbers = [39, 59, 8217, 128, 150, 153, 159, 0, 13, 55296, 1114112, 1, 11, 64976, 233, 99999999999]
    entities = ["&" + name for name in html.entities.html5 if name.endswith(";")]
    inside = text.split(" ")
    at = draw.randrange(len(inside))
    inside[at] = broken(draw, inside[at] + draw.choice(["é", "’", "—", "日", "…", "à"]))
    windows = "sloppy-windows-1252"
    return draw.choice([
        lambda: text.replace(" ", draw.choice(entities), 2),
        lambda: text.replace("e", f"&#{draw.choice(numbers)};", 2),
        lambda: text.replace("a", chr(draw.randrange(0x80, 0xA0)), 2),
        lambda: text.replace("o", " <b> &amp; ", 1),
        lambda: broken(draw, broken(draw, text, windows), windows),
        lambda: text.replace(" ", "\u2019 \uff21 \ufb01\x07\x1b[31m \u2028", 1),
        lambda: broken(draw, text).replace("\xa0", " "),
        lambda: broken(draw, text, windows).replace("\x81", "\ufffd").replace("\x9d", "\ufffd").replace("\x8f", "?"),
        lambda: " ".join(inside),
        lambda: text.replace(" ", "&" + draw.choice("AMP NBSP eacute EACUTE SZLIG x ntilde".split()) + draw.choice([";", "", " "])),
        lambda: broken(draw, text),
    ])()


def damaged_texts(draw, count, sources):
    """Documents of good paragraphs with one broken among them, and short ones of characters that broken text is made of."""
    pages = [entry["text"] for name in sources for entry in lines_of(name)]
    paragraphs = [p for text in pages for p in text.split("\n") if 20 < len(p) < 800]
    kinds = "".join(characters for characters in badness.MOJIBAKE_CATEGORIES.values()).replace("-", "")
    texts = []
    for _ in range(count):
        parts = [draw.choice(paragraphs) for _ in range(draw.randint(1, 5))]
        at = draw.randrange(len(parts))
        parts[at] = damaged(draw, parts[at])
        texts.append(draw.choice(["\n", "\n\n", "\r\n"]).join(parts))
        texts.append("".join(draw.choice([
            lambda: draw.choice(kinds), lambda: draw.choice("aeZ . 12"),
            lambda: broken(draw, draw.choice("éüßñ’“”—…日本語привет😀°²àÉ"))])() for _ in range(draw.randint(2, 14))))
    return [text.encode("utf-8", "ignore").decode() for text in texts]


def repair_differences(program, texts):
    theirs, got = [ftfy.fix_text(text) for text in texts], repaired(program, texts)
    different = [i for i, (a, b) in enumerate(zip(theirs, got)) if a != b]
    print(f"clean: {len(different)} of {len(texts)} differ; ftfy changes {sum(a != b for a, b in zip(texts, theirs))}")
    for i in different[:3]:
        print("   ", ascii(texts[i][:200]), ascii(theirs[i][:200]), ascii(got[i][:200]))
    return len(different)


def odd_text(draw):
    """Pieces that meet without spaces."""
    return " ".join("".join(draw.choices(PIECES, k=draw.randint(1, 4))) for _ in range(30))


def write_golden(folder, cases, name):
    (folder / name).write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")


def main():
    program = sys.argv[1]
    draw = random.Random(11)
    texts = [document(draw) for _ in range(4000)]
    made = len(texts)
    texts += [odd_text(draw) for _ in range(500)]
    for name in (PAGES, LANGUAGES):
        texts += [entry["text"][:4000] for entry in lines_of(name)]
    wrong = 0
    for name, rule in RULES.items():
        kept = ours(program, name, texts)
        answers = [judged(rule, text) for text in texts]
        different = [i for i, (keep, _) in enumerate(answers) if keep != (i in kept)]
        reasons = {}
        for _, reason in answers:
            reasons[reason] = reasons.get(reason, 0) + 1
        print(f"{name}: {len(different)} of {len(texts)} differ; {reasons}")
        for i in different[:3]:
            print("   ", answers[i], repr(texts[i][:200]))
        wrong += len(different)
    wrong += c4_differences(program, texts[:made])
    wrong += repair_differences(program, damaged_texts(draw, 5000, [PAGES, LANGUAGES]))
    if "--golden" in sys.argv:
        folder = pathlib.Path(sys.argv[sys.argv.index("--golden") + 1])
        write_golden(folder, [{"text": t, **{name: judged(rule, t)[1] for name, rule in RULES.items()}} for t in texts[:60] if len(t) < 1500],
                     "corpus_rules.json")
        write_golden(folder, [{"text": t, "words": split_into_words(t)} for t in texts[made:made + 40]], "corpus_words.json")
        short = [t for t in damaged_texts(draw, 400, [LANGUAGES]) if len(t) < 400]
        write_golden(folder, [{"text": t, "fixed": ftfy.fix_text(t)} for t in short[:200]], "repaired.json")
    sys.exit(wrong > 0)


main()
