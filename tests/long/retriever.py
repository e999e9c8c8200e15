#!/usr/bin/env python3
"""Which questions a retriever answers, beside Megatron-DeepSpeed's own matching of answers.

    build/oracle/bin/python tests/long/retriever.py BLOOMERY CHECKOUT

CHECKOUT is Megatron-DeepSpeed at commit 6acc370a; regex must be importable. Passages are paragraphs of speeches and an excerpt in many scripts, answers are taken
from them with other case, signs and normal forms, or are not in them. The order of the passages is ours (`retrieve search`); the hits that `evaluate` counts must be those that Megatron's
functions find in that order."""
import csv
import json
import lzma
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unicodedata

from training import SHARED_DATA

SIZES = ("--num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 8 "
         "--train-iters 1 --lr 1e-3 --eval-iters 0 --split 1,0,0").split()
STRANGE = ["Ärger im Café: ‘naïve’ Œuvre — 12½ °C, \"quoted\"\tand\ttabs", "Ελλάδα και Ἀθῆναι; ΣΊΣΥΦΟΣ", "日本語の文章。東京タワー 333メートル",
           "हिन्दी में क़लम और किताब", "Straße\u200bGroß İstanbul ǅungla ﬁne \ud7a3 ㎏", "e\u0301tude resume\u0301 naı\u0308ve a\u00a0b"]
TOPK = 40


def passages():
    lines = lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()).decode().splitlines()
    texts = []
    for line in lines[:12]:
        words = json.loads(line)["text"].split(" ")
        texts += [" ".join(words[i:i + 100]) for i in range(0, 1000, 100)]
    return texts + STRANGE


def disguised(answer, draw):
    change = draw.choice([str, str.upper, str.lower, lambda s: unicodedata.normalize("NFC", s), lambda s: unicodedata.normalize("NFD", s),
                          lambda s: s.replace(" ", "  "), lambda s: s[:-1], lambda s: s + "."])
    return change(answer)


def questions(texts, draw):
    rows = []
    for number in range(150):
        answers = []
        for _ in range(draw.randint(1, 3)):
            text = draw.choice(texts + STRANGE * 4)
            words = text.split(" ")
            first = draw.randrange(len(words))
            answers.append(disguised(" ".join(words[first:first + draw.randint(1, 4)]) or "x", draw))
        rows.append((f"question {number}: who said {draw.choice(answers)[:20]}", answers))
    return [(" ".join(question.split()), answers) for question, answers in rows]


def their_has_answer(checkout):
    sys.modules["spacy"] = types.ModuleType("spacy")
    sys.path.insert(0, str(checkout))
    from tasks.orqa.unsupervised.qa_utils import has_answer
    from tasks.orqa.unsupervised.tokenizers import SimpleTokenizer
    tokenizer = SimpleTokenizer()
    return lambda answers, text: has_answer(answers, text, tokenizer, "string")


def main():
    bloomery, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    vocabulary = SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt"
    has_answer = their_has_answer(checkout)
    draw = random.Random(5)

    def program(*arguments):
        return subprocess.run([bloomery, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        texts = passages()
        with open(folder / "passages.tsv", "w", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["id", "text", "title"])
            writer.writerows([10 + 3 * i, text, f"title \"{i}\""] for i, text in enumerate(texts))
        asked = questions(texts, draw)
        with open(folder / "qa.tsv", "w", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows([question, repr(answers)] for question, answers in asked)
        (folder / "queries").write_text("".join(question + "\n" for question, _ in asked))
        (folder / "text.jsonl").write_text("".join(json.dumps({"text": text, "title": "t"}) + "\n" for text in texts))
        tokenizer = ["--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", vocabulary]
        program("preprocess_data", "--input", folder / "text.jsonl", "--json-keys", "text", "title", "--split-sentences", *tokenizer,
                "--output-prefix", folder / "t")
        program("pretrain_ict", *SIZES, *tokenizer, "--data-path", folder / "t_text_sentence", "--titles-data-path",
                folder / "t_title_sentence", "--save", folder / "ict")
        program("retrieve", "index", "--load", folder / "ict", "--evidence-data-path", folder / "passages.tsv", "--index", folder / "index")
        found = [json.loads(line) for line in program("retrieve", "search", "--load", folder / "ict", "--index", folder / "index",
                                                      "--queries", folder / "queries", "--topk", TOPK, "--json").splitlines()]
        result = json.loads(program("evaluate", "--task", "RETRIEVER-EVAL", "--load", folder / "ict", "--embedding-path", folder / "index",
                                    "--qa-data-test", folder / "qa.tsv", "--faiss-topk-retrievals", TOPK,
                                    "--retriever-report-topk-accuracies", "1", "5", "--json"))["test"]
    hits = [0] * TOPK
    for row, (question, answers) in zip(found, asked, strict=True):
        assert row["query"] == question
        first = next((k for k, passage in enumerate(row["passages"]) if has_answer(answers, passage["text"])), None)
        assert all(passage["text"] == texts[(passage["id"] - 10) // 3] for passage in row["passages"])
        for k in range(TOPK if first is None else first, TOPK):
            hits[k] += 1
    assert result["hits"] == hits, f"{result['hits']}\n{hits}"
    print(f"{len(asked)} questions: {hits[0]} found first, {hits[-1]} in {TOPK} passages, as Megatron-DeepSpeed counts")


main()
