#!/usr/bin/env python3
"""BERT, T5 and ICT samples of real sentences beside those of Megatron-DeepSpeed's own code, split and blended.

    build/oracle/bin/python tests/long/sentence_samples.py BLOOMERY CHECKOUT

CHECKOUT is Megatron-DeepSpeed at commit 6acc370a; a copy of it is used. Two corpora of speeches are preprocessed by us,
its datasets read them with the stand-ins of tools/golden/megatron_samples.py, and every array of every sample of each split
must be ours."""
import json
import lzma
import pathlib
import shutil
import subprocess
import sys
import tempfile

from training import ROOT, SHARED_DATA

sys.path.insert(0, str(ROOT / "tools/golden"))
import megatron_samples  # noqa: E402

EXTRA_IDS = 60
# Their name of an array, ours.
BERT = {"text": "tokens", "types": "token_types", "labels": "labels", "loss_mask": "loss_mask", "is_random": "is_random"}
T5 = {"text_enc": "encoder_tokens", "text_dec": "tokens", "labels": "labels", "loss_mask": "loss_mask"}
ICT = {"query_tokens": "tokens", "context_tokens": "encoder_tokens"}
ARRAYS = {"bert": BERT, "t5": T5, "ict": ICT}
# Ours, and theirs that says which places are no padding.
LENGTHS = {"bert": {"lengths": "padding_mask"}, "t5": {"encoder_lengths": "text_enc"},
           "ict": {"lengths": "query_pad_mask", "encoder_lengths": "context_pad_mask"}}


class Tokenizer:
    """Of a vocab.txt, with sentinels behind it as Megatron's WordPiece tokenizer adds them."""

    def __init__(self, path):
        words = path.read_text().splitlines()
        self.cls, self.sep, self.pad, self.mask = (words.index(f"[{name}]") for name in ("CLS", "SEP", "PAD", "MASK"))
        words += ["[BOS]", "[EOS]"] + [f"<extra_id_{i}>" for i in range(EXTRA_IDS)]
        self.inv_vocab = dict(enumerate(words))
        self.bos_token_id, self.eos_token_id = len(words) - EXTRA_IDS - 2, len(words) - EXTRA_IDS - 1
        self.additional_special_tokens_ids = list(range(len(words) - EXTRA_IDS, len(words)))


def preprocess(bloomery, folder, vocabulary):
    """Two corpora of different size."""
    lines = lzma.decompress((SHARED_DATA / "corpora/sotu/sotu.jsonl.xz").read_bytes()).decode().splitlines()
    prefixes = []
    for name, part in (("a", lines[:40]), ("b", lines[40:60])):
        rows = [json.loads(line) for line in part]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": row["text"], "title": f"{row['name']}, {row['year']}"}) + "\n"
                                                      for row in rows))
        subprocess.run([bloomery, "preprocess_data", "--input", folder / f"{name}.jsonl", "--output-prefix", folder / name,
                        "--json-keys", "text", "title", "--split-sentences", "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", vocabulary],
                       check=True, capture_output=True)
        prefixes.append(folder / f"{name}_text_sentence")
    return prefixes


def theirs(paths, kind, split, requested, masking, short, seed, binary_head):
    from megatron.data.bert_dataset import BertDataset
    from megatron.data.dataset_utils import build_train_valid_test_datasets
    from megatron.data.ict_dataset import ICTDataset
    from megatron.data.t5_dataset import T5Dataset
    BertDataset.desc = T5Dataset.desc = ICTDataset.desc = ""  # which its blends ask for and these do not have
    vars(megatron_samples.ARGS).update(titles_data_path=titles(paths), query_in_block_prob=0.1, use_one_sent_docs=False)
    for path in paths[1::2] if len(paths) > 1 else paths:
        for old in pathlib.Path(path).parent.glob("*indexmap*"):
            old.unlink()
    return build_train_valid_test_datasets([str(path) for path in paths], "mmap", split, requested, 128, masking, short, seed,
                                           True, binary_head, 64, megatron_samples.DATASETS[kind])


def titles(paths):
    """Of the larger corpus, which Megatron takes for all of a blend."""
    return str(paths[0] if len(paths) == 1 else paths[1]).replace("_text_", "_title_")


def begin_anew(dataset):
    """A blend reads a sample when it is made, and with it numbers of the stream that ICT's samples draw from."""
    import random
    for each in getattr(dataset, "datasets", [dataset]):
        if hasattr(each, "rng"):
            each.rng = random.Random(each.seed)


def ours(bloomery, vocabulary, paths, kind, split, which, requested, count, masking, short, seed, binary_head):
    run = subprocess.run([bloomery, "data", "samples", "--kind", kind, "--json", "--data-path", *map(str, paths), "--split", split,
                          "--which", which, "--num-samples", str(requested), "--count", str(count), "--seq-length", "128",
                          "--decoder-seq-length", "64", "--mask-prob", str(masking), "--short-seq-prob", str(short),
                          "--seed", str(seed), "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", str(vocabulary),
                          "--vocab-extra-ids", str(EXTRA_IDS), *([] if binary_head else ["--bert-no-binary-head"]),
                          "--titles-data-path", titles(paths), "--titles-from-corpus-start"],
                         check=True, capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def compare(bloomery, vocabulary, paths, case):
    kind, split, requested, masking, short, seed, binary_head = case
    total = 0
    for which, wanted, dataset in zip(("train", "valid", "test"), requested, theirs(paths, *case)):
        if dataset is None:
            continue
        count = min(len(dataset), wanted)
        samples = ours(bloomery, vocabulary, paths, kind, split, which, wanted, count, masking, short, seed, binary_head)
        begin_anew(dataset)
        for k, sample in enumerate(samples):
            theirs_k = dataset[k]
            for their_name, our_name in ARRAYS[kind].items():
                expected = theirs_k[their_name]
                expected = expected.tolist() if hasattr(expected, "tolist") else int(expected)
                assert sample[our_name] == expected, f"{case} {which} sample {k}: {our_name}"
            for our_name, their_name in LENGTHS[kind].items():
                assert sample[our_name] == int((theirs_k[their_name] != 0).sum()), f"{case} {which} sample {k}: {our_name}"
        total += count
    return total


def main():
    bloomery, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    vocabulary = SHARED_DATA / "tokenizers/bert/bert-base-uncased-vocab.txt"
    tokenizer = Tokenizer(vocabulary)
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        shutil.copytree(checkout / "megatron", folder / "checkout/megatron")
        megatron_samples.load_megatron(folder / "checkout", lambda: tokenizer)
        a, b = preprocess(bloomery, folder, vocabulary)
        total = 0
        for paths in ([a], ["0.3", a, "0.7", b]):
            for case in (("bert", "949,50,1", [300, 30, 0], 0.15, 0.1, 1234, True), ("bert", "6,2,2", [200, 60, 60], 0.3, 0.5, 7, False),
                         ("t5", "8,1,1", [200, 40, 20], 0.15, 0.1, 1234, False), ("ict", "8,1,1", [900, 60, 40], 0.15, 0.1, 1234, False)):
                total += compare(bloomery, vocabulary, paths, case)
    print(f"{total} samples are those of Megatron-DeepSpeed")


main()
