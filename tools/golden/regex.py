#!/usr/bin/env python3
"""Writes tests/golden/regex.json: regular expressions of published tokenizers and random ones, random texts, and what Hugging
Face tokenizers finds in them: the ends of its matches that are not empty, and where texts are cut, in bytes."""
import argparse
import json
import pathlib
import random

from tokenizers import Regex, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
NOT_HAN = lambda s: s[:-1] + r"&&[^\p{Han}]]"  # noqa: E731
PUBLISHED = [
    rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + TAIL,
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{NOT_HAN(UPPER)}*{NOT_HAN(LOWER)}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?"
    rf"{NOT_HAN(UPPER)}+{NOT_HAN(LOWER)}*{CONTRACTIONS}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}",
    r" ?[^(\s|[.,!?…。，、।۔،])]+", r"[一-龥぀-ゟ゠-ヿ]+", r"\s?\p{L}+", r"\s?\p{P}+", r"[0-9][0-9][0-9]", r"\p{N}{1,3}",
    r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?<=\p{Ll})(?=\p{Lu})|(?<=\d)(?=\D)", r"\b\w+\b|\W+",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"\p{N}{1,3}+| ?\p{L}++|\s++$|\s+$|\s*[\r\n]|\s+(?!\S)|\s", r"(?>\s+)\S?|\S{1,4}?(?=\s|$)",
    r"(?i)[a-f]+\d*|\P{L}{2,3}|(?<!\p{L})\p{Lu}", r"\R|[[:punct:]]+|[[:alnum:]_]+", "(?x: \\p{L} + # words\n) | [^\\p{L}]"]
CLASSES = ["a", "b", "A", "é", "1", "٣", " ", "\\n", r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\p{L}", r"\p{Lu}", r"\p{N}", r"\P{L}",
           r"\p{Han}", "[a-z]", "[^a-z]", r"[\p{L}&&[^a-m]]", r"[^\s\p{L}]", ".", "'", r"\p{M}", r"\p{P}", r"[\r\n]", "[[:alpha:]]",
           "[[:^punct:]]", r"\h", r"[\w'-]", r"[[:graph:]]", r"[[:print:]]", r"\p{Hiragana}", r"\p{Sc}"]
REPEATS = ["", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "{,2}", "??", "*?", "+?", "?+", "*+", "++", "{1,2}?"]


def expression(rng, depth=0):
    kind = rng.random()
    if depth > 2 or kind < 0.4:
        return rng.choice(CLASSES) + rng.choice(REPEATS)
    if kind < 0.6:
        return f"({rng.choice(['', '?:', '?>'])}{expression(rng, depth + 1)}|{expression(rng, depth + 1)})" + rng.choice(REPEATS)
    if kind < 0.68:
        return rng.choice(["(?=", "(?!"]) + expression(rng, depth + 1) + ")"
    if kind < 0.74:
        return rng.choice(["(?<=", "(?<!"]) + rng.choice(CLASSES) + rng.choice(["", "|" + rng.choice(CLASSES) * 2]) + ")"
    if kind < 0.78:
        return rng.choice(["(?i:", "(?m:", "(?i-m:"]) + expression(rng, depth + 1) + ")"
    if kind < 0.83:
        return rng.choice(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"])
    return expression(rng, depth + 1) + expression(rng, depth + 1)


def text(rng):
    words = ["the", "Don't", "I'LL", "camelCase", "HTML", "1234567", "  ", "\n\n", "\r\n", " \t", "日本語", "ひらカタ", "e\u0301", "'ſ", "½",
             "€5.00", "!?", "<|endoftext|>", "ПРИвет", "हिन्दी", "👍🏽", "\u2028", "\x85", "a_b"]
    letters = "aabbAé 1٣ 2\n\r\t'.-_漢あ\u0301K"
    return "".join(rng.choice([rng.choice(words), rng.choice(letters)]) for _ in range(rng.randint(0, 12)))


def found(pattern, texts):
    regex = Regex(pattern)
    whole, cut = pre_tokenizers.Split(regex, "removed", invert=True), pre_tokenizers.Split(regex, "isolated")
    cases = []
    for t in texts:
        place = lambda i: len(t[:i].encode())  # noqa: E731
        matches = [[place(a), place(b)] for _, (a, b) in whole.pre_tokenize_str(t)]
        cuts = sorted({place(i) for _, span in cut.pre_tokenize_str(t) for i in span})
        cases.append({"text": t, "matches": matches, "cuts": cuts})
    return {"regex": pattern, "cases": cases}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--expressions", type=int, default=250)
    parser.add_argument("--output", default=ROOT / "tests/golden/regex.json")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    answers = []
    for pattern in PUBLISHED + ["|".join(expression(rng) for _ in range(rng.randint(1, 3))) for _ in range(options.expressions)]:
        try:
            answers.append(found(pattern, [text(rng) for _ in range(6)]))
        except BaseException as failure:  # a Rust panic is not an Exception
            print(f"{pattern}: {failure}")
    pathlib.Path(options.output).write_text("[\n" + ",\n".join(
        json.dumps(a, separators=(",", ":"), ensure_ascii=False) for a in answers) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
