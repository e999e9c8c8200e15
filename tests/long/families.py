#!/usr/bin/env python3
"""Every family learns from real text, and stopped and resumed gives bit for bit the losses and checkpoints of a run that went through.

    build/oracle/bin/python tests/long/families.py BLOOMERY [--device cuda] [--only NAME]

BERT, T5 and ICT's retriever read speeches cut into sentences, decoders with and without experts the same as a running text;
each on one rank and on several."""
import argparse
import json
import lzma
import pathlib
import sys
import tempfile

from training import SHARED_DATA, Program, expect_equal, expect_same_checkpoint, flags, metrics

SIZES = dict(num_layers=4, hidden_size=128, num_attention_heads=4, seq_length=64, max_position_embeddings=64, micro_batch_size=4,
             global_batch_size=16, train_iters=60, lr=2e-3, min_lr=1e-4, lr_decay_style="cosine", lr_warmup_fraction=0.1, split="90,9,1",
             log_interval=1, eval_interval=30, eval_iters=1, save_interval=20, bf16=True)
MIXTURE = dict(num_experts=[4], expert_interval=1, topk=2, moe_train_capacity_factor=1.25, moe_loss_coeff=0.05)
T5 = dict(decoder_seq_length=32, vocab_extra_ids=60)
# A retriever looks for the block of a sentence among those of its batch: sentences that stay in their blocks are found soon.
ICT = dict(biencoder_shared_query_context_model=True, query_in_block_prob=1, micro_batch_size=16, lr=1e-3, train_iters=80)
# Name -> program, the loss that falls, by how much, options.
CASES = {
    "BERT": ("pretrain_bert", "lm loss", 1.5, {}),
    "BERT, tensor and pipeline ranks": ("pretrain_bert", "lm loss", 1.5, dict(
        ranks_as_threads=4, tensor_model_parallel_size=2, sequence_parallel=True, pipeline_model_parallel_size=2)),
    "T5": ("pretrain_t5", "lm loss", 1.5, T5),
    "T5, a stage for each of its halves": ("pretrain_t5", "lm loss", 1.5, dict(
        T5, ranks_as_threads=4, pipeline_model_parallel_size=2, pipeline_model_parallel_split_rank=1, zero_stage=1)),
    "ICT": ("pretrain_ict", "loss", 0.3, dict(ICT)),
    "ICT, contexts of two ranks": ("pretrain_ict", "loss", 0.3, dict(ICT, ranks_as_threads=2, micro_batch_size=8, zero_stage=1)),
    "experts": ("pretrain_gpt", "lm loss", 2.0, MIXTURE),
    "experts on ranks of their own": ("pretrain_gpt", "lm loss", 2.0, dict(
        MIXTURE, ranks_as_threads=4, moe_expert_parallel_size=2, tensor_model_parallel_size=2, zero_stage=1)),
    "residual experts": ("pretrain_gpt", "lm loss", 2.0, dict(MIXTURE, num_experts=[2, 2, 4, 4], mlp_type="residual", topk=1)),
    "Mistral's window": ("pretrain_gpt", "lm loss", 2.0, dict(
        use_rotary_position_embeddings=True, normalization="rmsnorm", swiglu=True, disable_bias_linear=True,
        untie_embeddings_and_output_weights=True, num_key_value_heads=2, sliding_window=16)),
}


class Corpora:
    def __init__(self, program, folder):
        rows = [json.loads(line) for line in lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()).decode().splitlines()[:60]]
        text = folder / "speeches.jsonl"
        text.write_text("".join(json.dumps({"text": row["text"], "title": f"{row['name']}, {row['year']}"}) + "\n" for row in rows))
        pieces = flags(tokenizer_type="BertWordPieceLowerCase", vocab_file=SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt")
        bytes_ = flags(tokenizer_type="GPT2BPETokenizer", vocab_file=SHARED_DATA / "tokenizers/gpt2/gpt2-vocab.json",
                       merge_file=SHARED_DATA / "tokenizers/gpt2/gpt2-merges.txt")
        program("preprocess", *flags(input=text, output_prefix=folder / "sentences", json_keys=["text", "title"], split_sentences=True), *pieces)
        program("preprocess", *flags(input=text, output_prefix=folder / "speeches", append_eod=True), *bytes_)
        self.running = bytes_ + flags(data_path=folder / "speeches_text_document")
        self.sentences = pieces + flags(data_path=folder / "sentences_text_sentence")
        self.titles = flags(titles_data_path=folder / "sentences_title_sentence")

    def flags(self, name):
        return self.running if name == "pretrain_gpt" else self.sentences + (self.titles if name == "pretrain_ict" else [])


def check(program, corpora, folder, case):
    name, loss, fall, options = case
    options = {**SIZES, **options}

    def train(save, **more):
        return program(name, *program.device, *corpora.flags(name), *flags(**options, save=folder / save, load=folder / save), *flags(**more), expected=75 if more else 0)

    whole = train("whole")
    parts = [train("parts", exit_interval=23), train("parts", exit_interval=23), train("parts")]
    assert [part.loaded_iteration() for part in parts] == [None, 23, 46]
    lines = {number: fields for part in parts for number, fields in part.iterations().items()}
    expect_equal("iteration lines", sorted(lines.items()), sorted(whole.iterations().items()))
    expect_equal("metrics.jsonl", metrics(folder / "parts"), metrics(folder / "whole"))
    expect_same_checkpoint(program, folder / "parts", folder / "whole")
    losses = [float(lines[number][loss]) for number in sorted(lines)]
    first, last = (sum(part) / 5 for part in (losses[:5], losses[-5:]))
    assert last < first - fall, f"the loss fell from {first:.3f} to {last:.3f} only"
    return f"{len(losses)} steps, loss {first:.3f} to {last:.3f}, resumed twice"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    program, failures = Program(a.program, a.device), 0
    with tempfile.TemporaryDirectory() as root:
        corpora = Corpora(program, pathlib.Path(root))
        for number, (name, case) in enumerate(CASES.items()):
            if a.only not in name:
                continue
            folder = pathlib.Path(root) / str(number)
            folder.mkdir()
            try:
                print(f"{name}: {check(program, corpora, folder, case)}", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"{name}: FAILED: {error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)


main()
