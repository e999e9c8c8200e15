#!/usr/bin/env python3
"""A retriever that is tuned on questions, beside PyTorch.

    build/oracle/bin/python tests/long/questions.py BLOOMERY

The towers are transformers' MegatronBertModel, which start from one BERT. Compared are the losses and the found questions of every step (AdamW, hard
negatives, a last batch that is incomplete), on one rank and on two, and ranks and shares of validation after each epoch."""
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
import transformers

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
WORDS = ["".join(pair) for pair in zip("bcdfghklmn" * 6, sorted("aeiouy" * 10), "tnrslkmpbd" * 6)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
IDS = {w: i for i, w in enumerate(SPECIAL + WORDS)}
LENGTH, SEED, BATCH, EVALUATED, EPOCHS, RATE, TOPK = 14, 1234, 12, 5, 3, 1e-3, [1, 3, 10]


def questions(count, draw, hard=2):
    """A passage answers a question if it has both of its words. Of training each has as many hard negatives as are asked for: which are drawn is
    then no question, and their order changes nothing."""
    def passage(*words):
        words = list(words) + draw.sample(WORDS, draw.randint(0, 9))
        draw.shuffle(words)
        return dict(title=" ".join(draw.sample(WORDS, draw.randint(0, 3))), text=" ".join(words))
    rows = []
    for _ in range(count):
        a, b = draw.sample(WORDS, 2)
        rows.append(dict(question=f"{a} {b}" + draw.choice(["", "?"]), answers=[a], positive_ctxs=[passage(a, b), passage(a)],
                         hard_negative_ctxs=[passage(a) for _ in range(hard if hard == 2 else draw.randint(0, 4))],
                         negative_ctxs=[passage() for _ in range(draw.randint(0, 4))]))
    return rows


def encoded(*texts):
    ids = [2] + [i for n, text in enumerate(texts) for i in ([3] if n else []) + [IDS[w] for w in text.split()]]
    ids = ids[:LENGTH - 1] + [3]
    return ids + [0] * (LENGTH - len(ids))


class Retriever(torch.nn.Module):
    def __init__(self, base, hidden):
        super().__init__()
        self.query, self.context = (transformers.MegatronBertModel.from_pretrained(base, add_pooling_layer=False, attn_implementation="eager").float()
                                    for _ in range(2))
        self.scale = math.sqrt(hidden)

    @staticmethod
    def vectors(tower, rows):
        ids = torch.tensor(rows)
        return tower(input_ids=ids, attention_mask=(ids > 0).long()).last_hidden_state[:, 0]

    def scores(self, asked, passages):
        return self.vectors(self.query, asked) @ self.vectors(self.context, passages).T / self.scale


def columns(rows, negatives):
    """Passages of all rows, each one's own first, and where these are."""
    passages, own = [], []
    for row in rows:
        own.append(len(passages))
        passages += [encoded(p["title"], p["text"]) for p in row["positive_ctxs"][:1] + negatives(row)]
    return [encoded(row["question"].removesuffix("?")) for row in rows], passages, torch.tensor(own)


def theirs(base, hidden, train, valid):
    """Losses, found questions, and (rank, shares) of each epoch."""
    model = Retriever(base, hidden).train()
    optimizer = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.999), 1e-8, 0.0)
    losses, found, scores = [], [], []
    for epoch in range(EPOCHS):
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(SEED + epoch)).tolist()
        for begin in range(0, len(train), BATCH):
            asked, passages, own = columns([train[i] for i in order[begin:begin + BATCH]], lambda row: row["hard_negative_ctxs"])
            matrix = model.scores(asked, passages)
            loss = F.cross_entropy(matrix, own)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            found.append(int((matrix.argmax(1) == own).sum()))
        ranks, order = [], torch.randperm(len(valid), generator=torch.Generator().manual_seed(0)).tolist()
        with torch.no_grad():
            for begin in range(0, len(valid), EVALUATED):
                rows = [valid[i] for i in order[begin:begin + EVALUATED]]
                asked, passages, own = columns(rows, lambda row: row["negative_ctxs"][:3] + row["hard_negative_ctxs"][:2])
                ranks += [int((row > row[i]).sum()) for row, i in zip(model.scores(asked, passages), own)]
        scores.append([sum(ranks) / len(ranks)] + [100 * sum(r < k for r in ranks) / len(ranks) for k in TOPK])
    return losses, found, scores


def ours(program, root, base, name, *arguments):
    save = root / name
    command = [program, "finetune", "--task", "RET-FINETUNE-NQ", "--train-data", root / "train.json", "--valid-data", root / "dev.json", "--bert-load", base,
               "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", base / "vocab.txt", "--retriever-seq-length", LENGTH, "--seed", SEED,
               "--retriever-score-scaling", "--train-with-neg", "--train-hard-neg", 2, "--val-av-rank-other-neg", 3, "--val-av-rank-hard-neg", 2,
               "--retriever-report-topk-accuracies", *TOPK, "--eval-micro-batch-size", EVALUATED, "--keep-last", "--epochs", EPOCHS, "--lr", RATE,
               "--lr-decay-style", "constant", "--weight-decay", 0, "--attention-dropout", 0, "--hidden-dropout", 0, "--save", save, "--log-interval", 1,
               "--eval-iters", 0, "--device", "cpu", *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    lines = [line for line in map(json.loads, (save / "metrics.jsonl").read_text().splitlines()) if "lm_loss" in line]
    scores = [[float(x) for x in re.findall(r" = ([0-9.]+)", line)] for line in re.findall(r"^epoch:\d+(\|.*)$", done.stdout, re.M)]
    return [line["lm_loss"] for line in lines], [line["correct_prediction_count"] for line in lines], scores


def main():
    program, hidden = sys.argv[1], 48
    torch.set_num_threads(2)
    draw = random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        base = root / "base"
        base.mkdir()
        (base / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
        torch.manual_seed(5)
        transformers.MegatronBertForPreTraining(transformers.MegatronBertConfig(
            vocab_size=len(IDS), hidden_size=hidden, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=LENGTH,
            initializer_range=0.1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).save_pretrained(base)
        train, valid = questions(200, draw), questions(47, draw, hard=4)
        for name, rows in (("train", train), ("dev", valid)):
            (root / f"{name}.json").write_text(json.dumps(rows))
        losses, found, scores = theirs(base, hidden, train, valid)
        for ranks in (1, 2):
            mine, my_found, my_scores = ours(program, root, base, f"ranks{ranks}", "--micro-batch-size", BATCH // ranks, "--ranks-as-threads", ranks)
            assert len(mine) == len(losses) == EPOCHS * math.ceil(len(train) / BATCH), (len(mine), len(losses))
            apart = max(abs(a - b) for a, b in zip(mine[:20], losses[:20]))
            assert apart < 1e-4, (apart, mine[:20], losses[:20])
            assert my_found[:10] == found[:10], (my_found, found)
            rank_apart = max(abs(a[0] - b[0]) for a, b in zip(my_scores, scores, strict=True))
            share_apart = max(abs(x - y) for a, b in zip(my_scores, scores) for x, y in zip(a[1:], b[1:], strict=True))
            assert rank_apart < 0.1 and share_apart < 5, (my_scores, scores)
            print(f"{ranks} ranks: {len(mine)} losses from {mine[0]:.3f} to {mine[-1]:.3f}, the first 20 at most {apart:.1e} from PyTorch's; mean rank "
                  f"{my_scores[0][0]:.2f} to {my_scores[-1][0]:.2f}, at most {rank_apart:.2f} apart, shares {share_apart:.1f} points")


if __name__ == "__main__":
    main()
