#!/usr/bin/env python3
"""Makes tests/golden/hf/*: small random GPT-2s as folders of Hugging Face, one per form of storage.

Beside the model each folder has logits.safetensors: two sequences of tokens and their logits, computed by
transformers in fp64 from the stored numbers. files/ holds single files of torch.save for the reader's
tests. Needs torch, safetensors and transformers.
Usage: tools/golden/hf.py [OUTPUT_FOLDER]"""
import json
import os
import pathlib
import shutil
import sys
import zipfile

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

BASE = dict(vocab_size=37, n_positions=14, n_embd=12, n_layer=2, n_head=3, bos_token_id=36, eos_token_id=36)


def make_model(seed, dtype=torch.float32, **config):
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(GPT2Config(**{**BASE, **config}))
    with torch.no_grad():
        for parameter in model.parameters():  # also the norms and biases, which start trivial
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1.0 if parameter.ndim == 1 else 0.0) * 0.2)
    return model.to(dtype).eval()


def write_config(folder, model, **changes):
    folder.mkdir(parents=True)
    config = {**model.config.to_dict(), **changes}
    config = {key: config[key] for key in sorted(config) if not key.startswith("_")}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def write_logits(folder, model):
    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, model.config.vocab_size, (2, 11), generator=generator)
    with torch.no_grad():
        logits = model.double()(tokens).logits
    save_file({"tokens": tokens.to(torch.int32), "logits": logits}, folder / "logits.safetensors")


def weights(model, prefix=True, output=False, masks=False):
    state = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and not output:
            continue
        state[name if prefix else name.removeprefix("transformer.")] = tensor.contiguous().clone()
    if masks:
        size = model.config.n_positions
        for i in range(model.config.n_layer):
            stem = ("transformer." if prefix else "") + f"h.{i}.attn."
            state[stem + "bias"] = torch.tril(torch.ones(size, size, dtype=torch.uint8)).view(1, 1, size, size)
            state[stem + "masked_bias"] = torch.tensor(-1e4)
    return state


def shards(state, stem, extension):
    names = list(state)
    cut = len(names) // 3
    parts = [names[:cut], names[cut:2 * cut], names[2 * cut:]]
    files = [f"{stem}-{i + 1:05}-of-00003.{extension}" for i in range(3)]
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in state.values())},
             "weight_map": {name: file for file, part in zip(files, parts) for name in part}}
    return [(file, {name: state[name] for name in part}) for file, part in zip(files, parts)], index


def write_folders(root):
    folder, model = root / "safetensors", make_model(1)
    write_config(folder, model)
    save_file(weights(model), folder / "model.safetensors", {"format": "pt"})
    write_logits(folder, model)

    folder, model = root / "safetensors_sharded", make_model(2, torch.bfloat16, activation_function="gelu")
    write_config(folder, model)
    parts, index = shards(weights(model), "model", "safetensors")
    for file, part in parts:
        save_file(part, folder / file, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    write_logits(folder, model)

    # As transformers wrote it for years: the output's weight beside the embedding in one storage.
    folder, model = root / "bin", make_model(3, n_inner=20, layer_norm_epsilon=1e-3)
    write_config(folder, model)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    write_logits(folder, model)

    folder, model = root / "bin_sharded", make_model(4, torch.float16, activation_function="relu")
    write_config(folder, model)
    parts, index = shards(weights(model, prefix=False, masks=True), "pytorch_model", "bin")
    for file, part in parts:
        torch.save(part, folder / file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=1) + "\n")
    write_logits(folder, model)

    folder, model = root / "bin_legacy", make_model(5, tie_word_embeddings=False, activation_function="silu")
    write_config(folder, model)
    state = {name: torch.nn.Parameter(tensor) for name, tensor in weights(model, output=True).items()}
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    write_logits(folder, model)

    folder, model = root / "base_model", make_model(6, torch.float64, n_head=1, n_layer=1)
    write_config(folder, model, architectures=["GPT2Model"])
    save_file(weights(model, prefix=False, masks=True), folder / "model.safetensors", {"format": "pt"})
    write_logits(folder, model)


def write_files(folder):
    folder.mkdir(parents=True)
    numbers = torch.arange(24, dtype=torch.float32)
    state = {"plain": numbers.view(4, 6), "transposed": numbers.view(4, 6).t(), "part": numbers[5:11],
             "steps": numbers.view(4, 6)[1:, ::2], "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3),
             "long": torch.tensor([1, -2, 2**40]), "flag": torch.tensor([True, False]),
             "byte": torch.tensor([7, 255], dtype=torch.uint8), "half": torch.tensor([1.5], dtype=torch.float16),
             "bf16": torch.tensor([1.5], dtype=torch.bfloat16), "double": torch.tensor([0.1], dtype=torch.float64)}
    torch.save(state, folder / "views.bin")
    torch.save(state, folder / "views_legacy.bin", _use_new_zipfile_serialization=False)
    torch.save(state, folder / "views_protocol4.bin", pickle_protocol=4)
    with zipfile.ZipFile(folder / "views.bin") as stored, \
            zipfile.ZipFile(folder / "views_deflated.bin", "w", zipfile.ZIP_DEFLATED) as deflated:
        for name in stored.namelist():
            deflated.writestr(zipfile.ZipInfo(name), stored.read(name), zipfile.ZIP_DEFLATED)
    torch.save({"a": numbers, "when": __import__("datetime").date(2020, 1, 1)}, folder / "refused_date.bin")
    torch.save(torch.nn.Linear(2, 2), folder / "refused_module.bin")

    class Attack:
        def __reduce__(self):
            return os.system, ("touch executed",)

    torch.save({"a": Attack()}, folder / "refused_call.bin")


def main():
    here = pathlib.Path(__file__).resolve().parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent.parent / "tests/golden/hf"
    shutil.rmtree(root, ignore_errors=True)
    write_folders(root)
    write_files(root / "files")


main()
