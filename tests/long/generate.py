#!/usr/bin/env python3
"""Texts of `bloomery generate` beside those of transformers, on random GPT-2s.

    build/oracle/bin/python tests/long/generate.py BLOOMERY [ROUNDS]

Each round: one model, several prompts of unequal length in one batch. Greedy search, repetition penalty and beam search
must give transformers' tokens, log-probabilities (2e-5) and scores; with and without the cache; what is sampled must be
distributed as transformers' processors say."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessorList, RepetitionPenaltyLogitsProcessor
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
from transformers.utils import logging

TOLERANCE = 2e-5


def random_model(random):
    heads = int(random.integers(1, 5))
    vocabulary = int(random.integers(12, 200))
    config = GPT2Config(vocab_size=vocabulary, n_positions=int(random.integers(24, 64)),
                        n_embd=heads * int(random.choice([4, 6, 16, 20])), n_layer=int(random.integers(1, 4)), n_head=heads,
                        bos_token_id=vocabulary - 1, eos_token_id=vocabulary - 1, pad_token_id=vocabulary - 1)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.1 if parameter.ndim == 1 else 0.0, 0.35)
    return model.eval()


class Case:
    def __init__(self, program, root, seed):
        self.program, self.root = program, root
        self.random = numpy.random.default_rng(seed)
        torch.manual_seed(seed)
        self.model = random_model(self.random)
        self.model.save_pretrained(root / "model")
        vocabulary, positions = self.model.config.vocab_size, self.model.config.n_positions
        self.new_tokens = int(self.random.integers(3, 12))
        longest = positions - self.new_tokens
        self.prompts = [self.random.integers(0, vocabulary - 1, self.random.integers(1, longest + 1)).tolist()
                        for _ in range(self.random.integers(2, 6))]
        (root / "prompts").write_text("".join(" ".join(map(str, prompt)) + "\n" for prompt in self.prompts))

    def ours(self, *flags, file=None):
        command = [self.program, "generate", "--load", self.root / "model", "--tokenizer-type", "NullTokenizer",
                   "--vocab-size", str(self.model.config.vocab_size - 1), "--prompt-file", file or self.root / "prompts",
                   "--json", "--out-seq-length", str(self.new_tokens), "--num-threads", "1", *flags]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def theirs(self, prompt, **options):
        with torch.no_grad():
            result = self.model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                         max_new_tokens=self.new_tokens, do_sample=False, return_dict_in_generate=True,
                                         output_scores=True, **options)
        end, texts = self.model.config.eos_token_id, []
        for row in result.sequences[:, len(prompt):].tolist():
            texts.append(row[:row.index(end) + 1] if end in row else row)
        return texts, getattr(result, "sequences_scores", None)

    def logprobs(self, prompt, ids):
        with torch.no_grad():
            logits = self.model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:-1].double()
        return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()

    def compare(self, row, prompt, ids, what):
        assert row["prompt"] == " ".join(map(str, prompt)), what
        assert row["ids"] == ids, f"{what}: {row['ids']} instead of {ids}"
        end = self.model.config.eos_token_id
        assert row["text"].split() == [str(i) for i in ids if i != end], f"{what}: {row['text']}"
        assert row["finished"] == (ids[-1] == end), what
        worst = max(abs(a - b) for a, b in zip(row["logprobs"], self.logprobs(prompt, ids), strict=True))
        assert worst < TOLERANCE * max(1.0, max(map(abs, row["logprobs"]))), f"{what}: log-probabilities differ by {worst}"
        return worst

    def greedy(self, *flags, **options):
        rows = self.ours("--greedy", *flags)
        assert len(rows) == len(self.prompts)
        return max(self.compare(row, prompt, self.theirs(prompt, **options)[0][0], f"{flags}")
                   for row, prompt in zip(rows, self.prompts))

    def beams(self, *flags, **options):
        count, penalty = int(self.random.integers(2, 6)), float(self.random.choice([0.0, 0.7, 1.0, 2.0]))
        kept = int(self.random.integers(1, count + 1))
        rows = self.ours("--num-beams", str(count), "--length-penalty", str(penalty), "--num-samples", str(kept), *flags)
        assert len(rows) == kept * len(self.prompts)
        worst = 0.0
        for number, prompt in enumerate(self.prompts):
            texts, scores = self.theirs(prompt, num_beams=count, num_return_sequences=kept, length_penalty=penalty,
                                        early_stopping=False, **options)
            for i, row in enumerate(rows[number * kept:(number + 1) * kept]):
                what = f"{count} beams, length penalty {penalty}, result {i} {flags}"
                worst = max(worst, self.compare(row, prompt, texts[i], what))
                assert abs(row["score"] - scores[i].item()) < 1e-4 * max(1, abs(row["score"])), f"{what}: {row['score']} {scores[i]}"
        return worst

    def sampling(self, draws=4000):
        """How often each token follows one prompt, beside the probabilities that transformers' processors leave."""
        prompt = self.prompts[0]
        temperature, top_k, top_p = float(self.random.uniform(0.5, 3)), int(self.random.integers(2, 12)), 0.9
        (self.root / "one").write_text(" ".join(map(str, prompt)) + "\n")
        self.new_tokens, before = 1, self.new_tokens
        rows = self.ours("--num-samples", str(draws), "--temperature", str(temperature), "--top_k", str(top_k), "--top_p",
                         str(top_p), "--repetition-penalty", "1.3", "--batch-size", "500", file=self.root / "one")
        self.new_tokens = before
        ids = torch.tensor([prompt])
        with torch.no_grad():
            logits = self.model(ids).logits[:, -1].double()
        processors = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(1.3), TemperatureLogitsWarper(temperature),
                                          TopKLogitsWarper(top_k), TopPLogitsWarper(top_p)])
        expected = draws * torch.softmax(processors(ids, logits), -1)[0].numpy()
        counts = numpy.bincount([row["ids"][0] for row in rows], minlength=len(expected))
        assert not counts[expected == 0].any(), "a token was sampled that the processors remove"
        deviation = numpy.abs(counts - expected) / numpy.sqrt(numpy.maximum(expected, 1))
        assert deviation.max() < 6, f"{deviation.max()} standard deviations"


def check_one(program, root, seed):
    case = Case(program, root, seed)
    worst = max(case.greedy(), case.greedy("--recompute"), case.greedy("--batch-size", "2"),
                case.greedy("--repetition-penalty", "1.6", repetition_penalty=1.6), case.beams(), case.beams("--recompute"),
                case.beams("--repetition-penalty", "1.3", repetition_penalty=1.3))
    case.sampling()
    return worst


def main():
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    worst = 0.0
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as root:
            try:
                worst = max(worst, check_one(program, pathlib.Path(root), seed))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
    print(f"{rounds} GPT-2s: the same texts, log-probabilities within {worst:.1e}")


main()
