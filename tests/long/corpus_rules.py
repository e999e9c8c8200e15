#!/usr/bin/env python3
"""The rules of `data filter`, `data clean` and `data dedup` beside those of datatrove, ftfy and langdetect on random documents.

    pip install datatrove 'xxhash<4' regex tokenizers nltk spacy ftfy
    python3 tests/long/corpus_rules.py build/bloomery [--golden tests/golden/corpus_rules.json]

Words are the same on both sides: datatrove is given the tokenizer that words_of() is. Prints how many documents each rule drops
and how often the two differ; exits with 1 if they do. With --golden writes some of the documents with what datatrove says.
"""
import json
import lzma
import pathlib
import random
import subprocess
import sys
import tempfile

import ftfy
import ftfy.bad_codecs  # noqa: F401  sloppy-windows-1252
import regex
from datatrove.data import Document
from datatrove.pipeline.filters import c4_filters, fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter

WORDS = "the be to of and that have with a in is it for on was as at by this from which or an are not time people year way day " \
        "government house water number part world city school power music red blue long small Iñtërnâtiôn naïve größe 2,000 1999 don't".split()
ENDS = [".", ".", ".", "!", "?", "...", "…", "", '"', "'", "。", ":"]


def words_of(text, language=None):
    return regex.findall(r"[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_\s\x1c-\x1f]", text)


for module in (fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter):
    module.split_into_words = words_of
c4_filters.split_into_sentences = lambda text, language=None: [text]


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


def repair_agreement(program):
    """Shares of texts on which ftfy agrees: as they are, broken once, broken twice, with entities and other damage."""
    source = pathlib.Path(__file__).resolve().parents[3] / "shared/data/corpora/udhr/udhr.jsonl.xz"
    wanted = {"eng", "fra", "deu_1996", "spa", "por_PT", "ita", "pol", "ces", "swe", "rus", "ell_monotonic", "tur", "vie", "hun", "jpn", "cmn_hans", "heb"}
    texts = []
    with lzma.open(source, "rt") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["code"] in wanted:
                texts += [entry["text"][i:i + 200] for i in range(0, 6000, 200)]

    def broken(text):
        return text.encode("utf-8").decode("sloppy-windows-1252")

    def damaged(text):
        return text.replace("a", "&aacute;", 2).replace("e", "\u2019", 3).replace(" ", "\r\n", 1).replace("i", "\ufb01\x07\x1b[31m", 1)

    for name, change in (("as they are", str), ("broken once", broken), ("broken twice", lambda t: broken(broken(t))), ("damaged", damaged)):
        given = [change(text) for text in texts]
        theirs, got = [ftfy.fix_text(text) for text in given], repaired(program, given)
        equal = sum(a == b for a, b in zip(theirs, got))
        right = sum(ftfy.fix_text(t) == b for t, b in zip(texts, got)) if name != "damaged" else equal
        print(f"repair, texts {name}: {equal} of {len(texts)} as ftfy, {right} as they should be")


def main():
    program = sys.argv[1]
    draw = random.Random(11)
    texts = [document(draw) for _ in range(4000)]
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
    wrong += c4_differences(program, texts)
    repair_agreement(program)
    if "--golden" in sys.argv:
        cases = [{"text": t, **{name: judged(rule, t)[1] for name, rule in RULES.items()}} for t in texts[:60] if len(t) < 1500]
        pathlib.Path(sys.argv[sys.argv.index("--golden") + 1]).write_text(
            "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")
    sys.exit(wrong > 0)


main()
