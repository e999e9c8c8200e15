#!/usr/bin/env python3
"""Makes tests/golden/megatron_samples.json with Megatron-DeepSpeed's own code.

    python tools/golden/megatron_samples.py CHECKOUT

CHECKOUT is a copy of Megatron-DeepSpeed at commit 6acc370a outside of this tree; torch must be importable. Its C++ helpers are compiled, its corpus writer writes the corpus, and its BERT, T5 and ICT datasets read
it. What they need of the rest (arguments, tokenizer, DeepSpeed's accelerator) are the stand-ins below.

The corpus and the vocabulary are those of src/samples/megatron_samples_test.cpp."""
import hashlib
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import types

import torch
from torch.utils.cpp_extension import include_paths

SIZE = 300


class Tokenizer:
    """Ids 0 to 5 are [PAD] [CLS] [SEP] [MASK] [BOS] [EOS], 10 to 29 are sentinels; every third id from 30 on
    goes on with the word before it."""
    pad, cls, sep, mask, bos_token_id, eos_token_id = range(6)
    additional_special_tokens_ids = list(range(10, 30))
    inv_vocab = {i: f"##{i}" if i >= 30 and i % 3 == 0 else str(i) for i in range(SIZE)}


ARGS = types.SimpleNamespace(train_data_exact_num_epochs=None, train_idx_path=None, return_data_index=False)


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load_megatron(checkout, tokenizer=Tokenizer):
    """Its data code, with helpers compiled in the checkout."""
    accelerator = types.SimpleNamespace(device_count=lambda: 0, LongTensor=torch.LongTensor)
    mpu = types.SimpleNamespace(get_data_parallel_rank=lambda: 0, get_data_parallel_group=lambda: None)
    stand_in("deepspeed")
    stand_in("deepspeed.accelerator", get_accelerator=lambda: accelerator)
    megatron = stand_in("megatron", get_args=lambda: ARGS, get_tokenizer=tokenizer, print_rank_0=lambda *_: None,
                        is_rank_0=lambda: True, mpu=mpu)
    megatron.__path__ = [str(checkout / "megatron")]
    stand_in("megatron.core", mpu=mpu, tensor_parallel=None)
    torch.distributed.get_rank = lambda: 0
    torch.distributed.get_world_size = lambda group=None: 1
    torch.distributed.all_reduce = lambda counts, group=None: None
    compile_helpers(checkout / "megatron" / "data")


def compile_helpers(data):
    includes = [f"-I{folder}" for folder in (*include_paths(), sysconfig.get_path("include"))]  # PyTorch has pybind11
    subprocess.run(["c++", "-O2", "-shared", "-std=c++17", "-fPIC", *includes, str(data / "helpers.cpp"), "-o",
                    str(data / f"helpers{sysconfig.get_config_var('EXT_SUFFIX')}")], check=True)


def document(d):
    """Sentences of document d. Two have a sentence that is too long for a mapping unless it is alone."""
    lengths = [3 + (d * 7 + s * 5) % 20 for s in range(1 + d % 6)]
    if d in (7, 13, 24):
        lengths[0] = 600
    return [[30 + (d * 31 + s * 17 + i * 3) % 270 for i in range(length)] for s, length in enumerate(lengths)]


def title(d):
    return [40 + (d * 13 + i) % 250 for i in range(d % 9)]


def write_corpus(prefix, documents):
    from megatron.data.indexed_dataset import MMapIndexedDatasetBuilder
    import numpy
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin", dtype=numpy.uint16)
    for sentences in documents:
        for sentence in sentences:
            builder.add_item(torch.IntTensor(sentence))
        builder.end_document()
    builder.finalize(f"{prefix}.idx")


def numbers(values):
    return [int(value) for value in values]


KEYS = {"bert": ["text", "types", "labels", "loss_mask", "padding_mask", "is_random"],
        "t5": ["text_enc", "text_dec", "labels", "loss_mask"],
        "ict": ["query_tokens", "query_pad_mask", "context_tokens", "context_pad_mask", "block_data"]}
DATASETS = {"bert": "standard_bert", "t5": "t5", "ict": "ict"}


def case(prefix, kind, split, requested, masking, short, seed, binary_head, exact_epochs=None, in_block=0.1, one_sentence=False):
    from megatron.data.dataset_utils import build_train_valid_test_datasets
    ARGS.train_data_exact_num_epochs = exact_epochs
    ARGS.titles_data_path = f"{prefix}_titles"
    ARGS.query_in_block_prob, ARGS.use_one_sent_docs = in_block, one_sentence
    for old in prefix.parent.glob("*indexmap*"):
        old.unlink()
    datasets = build_train_valid_test_datasets([str(prefix)], "mmap", split, requested, 64, masking, short, seed, True,
                                               binary_head, 48, DATASETS[kind])
    keys = KEYS[kind]
    result = {"kind": kind, "split": split, "requested": requested, "masking": masking, "short": short, "seed": seed,
              "binary_head": binary_head, "exact_epochs": exact_epochs or 0, "in_block": in_block, "one_sentence": one_sentence,
              "files": sorted(path.name for path in prefix.parent.glob("*indexmap*")), "splits": []}
    for dataset in datasets:
        if dataset is None:
            result["splits"].append(None)
            continue
        digest, first = hashlib.md5(), []
        for k in range(len(dataset)):
            sample = dataset[k]
            arrays = {key: numbers(sample[key]) if sample[key].__class__.__name__ == "ndarray" else int(sample[key])
                      for key in keys}
            for key in keys:
                value = arrays[key]
                digest.update((" ".join(map(str, value if isinstance(value, list) else [value])) + "\n").encode())
            if k < 2:
                first.append(arrays)
        result["splits"].append({"size": len(dataset), "md5": digest.hexdigest(), "first": first})
    return result


def main():
    checkout = pathlib.Path(sys.argv[1]).resolve()
    load_megatron(checkout)
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "corpus"
        write_corpus(prefix, [document(d) for d in range(60)])
        write_corpus(f"{prefix}_titles", [[title(d)] for d in range(60)])
        cases = [case(prefix, "bert", "8,1,1", [200, 40, 20], 0.15, 0.1, 1234, True),
                 case(prefix, "bert", "8,1,1", [200, 40, 20], 0.15, 0.1, 1234, False),
                 case(prefix, "bert", "3,2,0", [500, 100, 0], 0.4, 0.5, 7, True),
                 case(prefix, "bert", "1,0,0", [1, 0, 0], 0.15, 0.0, 99, True, 3),
                 case(prefix, "t5", "8,1,1", [200, 40, 20], 0.15, 0.1, 1234, False),
                 case(prefix, "t5", "3,2,0", [500, 100, 0], 0.3, 0.5, 7, False),
                 case(prefix, "t5", "1,0,0", [1, 0, 0], 0.15, 0.0, 99, False, 2),
                 case(prefix, "ict", "8,1,1", [200, 40, 20], 0.15, 0.1, 1234, False),
                 case(prefix, "ict", "3,2,0", [500, 100, 0], 0.15, 0.1, 7, False, in_block=0.5, one_sentence=True)]
    out = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "megatron_samples.json"
    out.write_text(json.dumps({"commit": "6acc370a", "cases": cases}, separators=(",", ":")) + "\n")
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
