#!/usr/bin/env python3
"""Random GPT-2s of transformers, read, computed and written by us.

    build/oracle/bin/python tests/long/hf.py BLOOMERY_HF_EXPORT [ROUNDS]

Each round makes a GPT-2 of random shape, activation and dtype in a random form of storage. Our logits must be
transformers' (1e-4 of the largest, fp32), and transformers must load our export with every number as it was."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

ACTIVATIONS = ["gelu_new", "gelu", "relu", "silu", "relu2", "gelu_pytorch_tanh", "gelu_fast"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def random_model(random):
    heads = int(random.integers(1, 7))
    width = heads * int(random.choice([1, 4, 5, 16, 32]))
    config = GPT2Config(vocab_size=int(random.integers(2, 400)), n_positions=int(random.integers(12, 70)), n_embd=width,
                        n_layer=int(random.integers(1, 5)), n_head=heads,
                        n_inner=[None, int(random.integers(1, 90))][random.integers(2)],
                        activation_function=str(random.choice(ACTIVATIONS)),
                        layer_norm_epsilon=float(random.choice([1e-5, 1e-6, 1e-3])),
                        tie_word_embeddings=bool(random.integers(2)), bos_token_id=0, eos_token_id=1,
                        resid_pdrop=float(random.choice([0.0, 0.1])))
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.1 if parameter.ndim == 1 else 0.0, 0.3)
    return model.to(DTYPES[random.integers(len(DTYPES))]).eval()


def cut(names, random):
    count = int(random.integers(1, 5))
    return [[name for i, name in enumerate(names) if i % count == k] for k in range(count)]


def save(model, folder, random):
    folder.mkdir()
    config = model.config.to_dict()
    config["dtype"] = str(model.dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(config))
    prefix = bool(random.integers(2))
    state = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings and random.integers(2):
            continue
        state[name if prefix else name.removeprefix("transformer.")] = tensor
    form = ["safetensors", "bin", "legacy"][random.integers(3)]
    extension, stem = ("safetensors", "model") if form == "safetensors" else ("bin", "pytorch_model")

    def write(part, path):
        if form == "safetensors":
            save_file({name: tensor.contiguous().clone() for name, tensor in part.items()}, path, {"format": "pt"})
        else:
            torch.save(part, path, _use_new_zipfile_serialization=form == "bin")

    if random.integers(2):
        write(state, folder / f"{stem}.{extension}")
        return
    places, parts = {}, cut(list(state), random)
    for i, part in enumerate(parts):
        file = f"{stem}-{i + 1:05}-of-{len(parts):05}.{extension}"
        write({name: state[name] for name in part}, folder / file)
        places.update({name: file for name in part})
    (folder / f"{stem}.{extension}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def check_one(program, root, seed):
    random = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    model = random_model(random)
    save(model, root / "theirs", random)
    length = int(random.integers(1, model.config.n_positions + 1))
    tokens = torch.from_numpy(random.integers(0, model.config.vocab_size, (2, length)))
    save_file({"tokens": tokens.to(torch.int32)}, root / "theirs/tokens.safetensors")
    shard = str(random.choice([5_000_000_000, 20_000]))
    subprocess.run([program, root / "theirs", root / "ours", shard], check=True)

    again, report = GPT2LMHeadModel.from_pretrained(root / "ours", output_loading_info=True)
    assert not any(report.values()), f"seed {seed}: {report}"
    assert again.dtype == model.dtype, f"seed {seed}: {again.dtype} instead of {model.dtype}"
    for (name, before), (_, after) in zip(model.state_dict().items(), again.state_dict().items()):
        assert torch.equal(before, after), f"seed {seed}: {name} differs"
    for key in ("activation_function", "layer_norm_epsilon", "tie_word_embeddings", "eos_token_id", "resid_pdrop"):
        theirs, ours = getattr(model.config, key), getattr(again.config, key)
        assert theirs == ours or key == "activation_function", f"seed {seed}: {key} {ours} instead of {theirs}"
    with torch.no_grad():
        expected = again.double()(tokens).logits
    actual = load_file(root / "ours/our_logits.safetensors")["logits"].double()
    error = (actual - expected).abs().max().item() / max(1.0, expected.abs().max().item())
    assert error < 1e-4, f"seed {seed}: logits differ by {error}"
    return error


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    worst = 0.0
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as root:
            worst = max(worst, check_one(program, pathlib.Path(root), seed))
    print(f"{rounds} GPT-2s: every number kept, logits within {worst:.1e}")


main()
