#!/usr/bin/env python3
"""Random GPT-2s, Llamas, Qwen2s and GPT-NeoXs of transformers, read, computed and written by us.

    build/oracle/bin/python tests/long/hf.py BLOOMERY_HF_EXPORT [ROUNDS]

Each round makes a model of random shape, options and dtype in a random form of storage; norms and biases are random too.
Our logits must be transformers' (2e-5 of the largest, fp32 beside fp64), so must loss and gradients (1e-5 of a tensor's
largest element, or twice what fp32 costs PyTorch where that is more), and transformers must load our export with every number as it was."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoXConfig, LlamaConfig, Qwen2Config
from transformers.utils import logging

ACTIVATIONS = ["gelu_new", "gelu", "relu", "silu", "relu2", "gelu_pytorch_tanh", "gelu_fast"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def rope_scaling(random, positions):
    """None, or a kind of scaling in the old or the new spelling."""
    kind = str(random.choice(["none", "linear", "llama3", "yarn", "dynamic"]))
    if kind == "none":
        return None
    scaling = {"rope_type": kind, "factor": float(random.choice([2.0, 4.0, 8.0]))}
    if kind in ("llama3", "yarn"):
        scaling["original_max_position_embeddings"] = max(8, positions // 4)
    if kind == "llama3":
        scaling.update(low_freq_factor=1.0, high_freq_factor=float(random.choice([2.0, 4.0])))
    if kind == "yarn" and random.integers(2):
        scaling.update(beta_fast=16.0, beta_slow=2.0)
    return scaling


def gpt2(random):
    heads = int(random.integers(1, 7))
    width = heads * int(random.choice([1, 4, 5, 16, 32]))
    return GPT2Config(n_positions=int(random.integers(12, 70)), n_embd=width, n_layer=int(random.integers(1, 5)), n_head=heads,
                      n_inner=[None, int(random.integers(1, 90))][random.integers(2)],
                      activation_function=str(random.choice(ACTIVATIONS)),
                      layer_norm_epsilon=float(random.choice([1e-5, 1e-6, 1e-3])), resid_pdrop=float(random.choice([0.0, 0.1])))


def llama_like(random):
    groups, per_group = int(random.integers(1, 4)), int(random.integers(1, 4))
    head_dim = int(random.choice([4, 8, 16, 24]))
    heads = groups * per_group
    positions = int(random.integers(40, 90))
    return dict(hidden_size=heads * head_dim, num_attention_heads=heads, num_key_value_heads=groups,
                intermediate_size=int(random.integers(1, 90)), num_hidden_layers=int(random.integers(1, 5)),
                max_position_embeddings=positions, rms_norm_eps=float(random.choice([1e-5, 1e-6])),
                hidden_act=str(random.choice(["silu", "gelu", "gelu_new", "relu"])),
                rope_parameters={"rope_theta": float(random.choice([1e4, 5e5])), **(rope_scaling(random, positions) or {"rope_type": "default"})})


def llama(random):
    options = llama_like(random)
    if random.integers(2):  # heads that are together wider or narrower than the model
        options["head_dim"] = int(random.choice([2, 4, 6, 32]))
    return LlamaConfig(**options, attention_bias=bool(random.integers(2)), mlp_bias=bool(random.integers(2)))


def qwen2(random):
    return Qwen2Config(**llama_like(random))


def neox(random):
    heads, head_dim = int(random.integers(1, 6)), int(random.choice([8, 16, 24]))
    positions = int(random.integers(40, 90))
    return GPTNeoXConfig(hidden_size=heads * head_dim, num_attention_heads=heads, intermediate_size=int(random.integers(1, 90)),
                         num_hidden_layers=int(random.integers(1, 5)), max_position_embeddings=positions,
                         hidden_act=str(random.choice(ACTIVATIONS)), use_parallel_residual=bool(random.integers(2)),
                         attention_bias=bool(random.integers(4)), layer_norm_eps=float(random.choice([1e-5, 1e-3])),
                         rope_parameters={"rope_theta": float(random.choice([1e4, 2e4])),
                                          "partial_rotary_factor": float(random.choice([0.25, 0.5, 0.75, 1.0])),
                                          **(rope_scaling(random, positions) or {"rope_type": "default"})})


FAMILIES = [gpt2, llama, qwen2, neox]


def random_model(random, seed):
    config = FAMILIES[seed % len(FAMILIES)](random)
    config.vocab_size = int(random.integers(2, 400))
    config.tie_word_embeddings = bool(random.integers(2))
    config.bos_token_id, config.eos_token_id = 0, 1
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # gains off one, biases off zero, products that keep their scale
            gain = parameter.ndim == 1 and name.endswith("weight")
            deviation = 0.3 if parameter.ndim == 1 else max(parameter.shape) ** -0.5
            parameter.normal_(1.0 if gain else 0.1 if parameter.ndim == 1 else 0.0, deviation)
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
    stem_name = model.base_model_prefix + "."
    for name, tensor in model.state_dict().items():
        if name in ("lm_head.weight", "embed_out.weight"):
            if model.config.tie_word_embeddings and random.integers(2):
                continue
            name = "embed_out.weight" if model.config.model_type == "gpt_neox" else name
        state[name if prefix else name.removeprefix(stem_name)] = tensor
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


def reference(model, tokens, labels, dtype=torch.float64):
    state = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    model.config.dtype = None
    model = AutoModelForCausalLM.from_config(model.config).to(dtype).eval()  # with rotary angles that were never rounded
    model.load_state_dict(state)
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    if model.config.model_type == "gpt_neox" and "lm_head.weight" in gradients:
        gradients["embed_out.weight"] = gradients.pop("lm_head.weight")
    return logits.detach(), loss.item(), gradients


def check_one(program, root, seed):
    random = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    model = random_model(random, seed)
    save(model, root / "theirs", random)
    length = int(random.integers(1, min(model.config.max_position_embeddings, 40) + 1))
    tokens, labels = (torch.from_numpy(random.integers(0, model.config.vocab_size, (2, length))) for _ in range(2))
    save_file({"tokens": tokens.to(torch.int32), "labels": labels.to(torch.int32)}, root / "theirs/tokens.safetensors")
    shard = str(random.choice([5_000_000_000, 20_000]))
    subprocess.run([program, root / "theirs", root / "ours", shard], check=True)
    place = f"seed {seed}, {model.config.model_type}"

    again, report = AutoModelForCausalLM.from_pretrained(root / "ours", output_loading_info=True)
    assert not any(report.values()), f"{place}: {report}"
    assert again.dtype == model.dtype, f"{place}: {again.dtype} instead of {model.dtype}"
    for (name, before), (_, after) in zip(model.state_dict().items(), again.state_dict().items()):
        assert torch.equal(before, after), f"{place}: {name} differs"
    for key in ("layer_norm_epsilon", "rms_norm_eps", "layer_norm_eps", "tie_word_embeddings", "eos_token_id", "resid_pdrop",
                "head_dim", "use_parallel_residual", "attention_bias", "mlp_bias", "rope_parameters", "num_key_value_heads"):
        theirs, ours = getattr(model.config, key, None), getattr(again.config, key, None)
        if key == "rope_parameters" and theirs:
            theirs, ours = ({k: v for k, v in x.items() if k not in ("beta_fast", "beta_slow", "truncate")} for x in (theirs, ours))
        assert theirs == ours or key == "head_dim" and theirs is None, f"{place}: {key} {ours} instead of {theirs}"
    computed = load_file(root / "ours/computed.safetensors")
    for whose in (again, model):  # both are the same function
        expected, loss, gradients = reference(whose, tokens, labels)
        error = (computed["logits"].double() - expected).abs().max().item() / expected.abs().max().item()
        assert error < 2e-5, f"{place}: logits differ by {error}"
        assert abs(computed["loss"].item() - loss) < 1e-5 * loss, f"{place}: loss {computed['loss'].item()}, not {loss}"
    rounded = reference(model, tokens, labels, torch.float32)[2]
    worst = 0.0
    for name, gradient in gradients.items():
        largest = max(gradient.abs().max().item(), 1e-30)
        ours, theirs = ((x.double() - gradient).abs().max().item() / largest for x in (computed.pop("grad." + name), rounded[name]))
        worst = max(worst, ours)
        assert ours < max(1e-5, 2 * theirs), f"{place}: gradient of {name} {list(gradient.shape)}: {ours}, in PyTorch's fp32 {theirs}"
    assert set(computed) == {"logits", "loss"}, f"{place}: {set(computed)}"
    return error, worst


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    worst = (0.0, 0.0)
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as root:
            worst = tuple(map(max, worst, check_one(program, pathlib.Path(root), seed)))
    print(f"{rounds} models: every number kept, logits within {worst[0]:.1e}, gradients within {worst[1]:.1e}")


main()
