#!/usr/bin/env python3
"""Texts of `bloomery generate` beside those of transformers, on random GPT-2s, T5s, and Mistrals and Qwen3s with short windows.

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
from transformers import AutoModelForCausalLM, GPT2Config, LogitsProcessorList, MistralConfig, Qwen3Config
from transformers import RepetitionPenaltyLogitsProcessor, T5Config, T5ForConditionalGeneration, TemperatureLogitsWarper
from transformers import TopKLogitsWarper, TopPLogitsWarper
from transformers.utils import logging

TOLERANCE = 2e-5


def random_model(random, kind):
    heads, layers = int(random.integers(1, 5)), int(random.integers(1, 4))
    vocabulary, positions = int(random.integers(12, 200)), int(random.integers(24, 64))
    width = heads * int(random.choice([4, 6, 16, 20]))
    ends = dict(vocab_size=vocabulary, bos_token_id=vocabulary - 1, eos_token_id=vocabulary - 1, pad_token_id=vocabulary - 1)
    # A window of 1 is left out: transformers' cache then keeps everything, and texts differ from those without a cache.
    common = dict(hidden_size=width, num_attention_heads=heads, num_key_value_heads=1, num_hidden_layers=layers,
                  intermediate_size=24, max_position_embeddings=positions, sliding_window=int(random.integers(2, 12)))
    if kind == 0:
        config = GPT2Config(n_positions=positions, n_embd=width, n_layer=layers, n_head=heads, **ends)
    elif kind == 1:
        config = MistralConfig(**common, **ends)
    else:
        config = Qwen3Config(use_sliding_window=True, max_window_layers=int(random.integers(layers)), head_dim=8, **common, **ends)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.1 if parameter.ndim == 1 else 0.0, 0.35)
    return model.eval()


def random_t5(random, _):
    vocabulary = int(random.integers(12, 200))
    config = T5Config(vocab_size=vocabulary, d_model=int(random.choice([16, 24])), d_kv=int(random.choice([4, 6, 16])),
                      d_ff=int(random.integers(8, 60)), num_heads=int(random.integers(1, 5)), num_layers=int(random.integers(1, 4)),
                      relative_attention_num_buckets=8,  # and as many decoder layers, or their cache is too short
                      relative_attention_max_distance=int(random.choice([10, 30])), decoder_start_token_id=0, pad_token_id=0,
                      eos_token_id=vocabulary - 1, feed_forward_proj=str(random.choice(["relu", "gated-gelu"])))
    model = T5ForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(1.0 if parameter.ndim == 1 else 0.0, 0.35)
    return model.eval()


class Case:
    make_model = staticmethod(random_model)

    def __init__(self, program, root, seed):
        self.program, self.root = program, root
        self.random = numpy.random.default_rng(seed)
        torch.manual_seed(seed)
        self.model = self.make_model(self.random, seed % 4)
        self.model.save_pretrained(root / "model")
        vocabulary, positions = self.model.config.vocab_size, getattr(self.model.config, "max_position_embeddings", 40)
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
        for row in result.sequences[:, self.num_fed(prompt):].tolist():
            texts.append(row[:row.index(end) + 1] if end in row else row)
        return texts, getattr(result, "sequences_scores", None)

    def num_fed(self, prompt):
        """Tokens in front of the new ones."""
        return len(prompt)

    def logits(self, prompt, ids):
        """Of what follows the prompt and each of the ids after it."""
        with torch.no_grad():
            return self.model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:].double()

    def occurred(self, prompt):
        return prompt

    def logprobs(self, prompt, ids):
        logits = self.logits(prompt, ids[:-1])
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
        ids = torch.tensor([self.occurred(prompt)])
        logits = self.logits(prompt, [])[-1:]
        processors = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(1.3), TemperatureLogitsWarper(temperature),
                                          TopKLogitsWarper(top_k), TopPLogitsWarper(top_p)])
        expected = draws * torch.softmax(processors(ids, logits), -1)[0].numpy()
        counts = numpy.bincount([row["ids"][0] for row in rows], minlength=len(expected))
        assert not counts[expected == 0].any(), "a token was sampled that the processors remove"
        deviation = numpy.abs(counts - expected) / numpy.sqrt(numpy.maximum(expected, 1))
        assert deviation.max() < 6, f"{deviation.max()} standard deviations"


class T5Case(Case):
    make_model = staticmethod(random_t5)

    def num_fed(self, prompt):
        return 1

    def logits(self, prompt, ids):
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[0] + ids])).logits[0].double()

    def occurred(self, prompt):
        return [0]


def check_one(program, root, seed):
    case = (T5Case if seed % 4 == 3 else Case)(program, root, seed)
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
    print(f"{rounds} models: the same texts, log-probabilities within {worst:.1e}")


main()
