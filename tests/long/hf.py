#!/usr/bin/env python3
"""Random GPT-2s, Llamas, Qwen2s, GPT-NeoXs, Mistrals, Qwen3s, Gemmas, Mixtrals, Qwen2-MoEs, BERTs, Megatron-BERTs and T5s of transformers, read, computed and written by us.

    build/oracle/bin/python tests/long/hf.py BLOOMERY_HF_EXPORT [ROUNDS [FAMILY]]

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
from transformers import (AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForPreTraining, BertConfig, GemmaConfig, GPT2Config,
                          GPTNeoXConfig, LlamaConfig, MegatronBertConfig, MistralConfig, MixtralConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config, T5Config,
                          T5ForConditionalGeneration)
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


def some_windows(random, layers):
    """None, or sliding windows in the last layers or in any."""
    kind = int(random.integers(3))
    options = dict(use_sliding_window=kind > 0, sliding_window=int(random.integers(2, 30)))
    if kind == 1:
        options["max_window_layers"] = int(random.integers(layers))
    if kind == 2:
        options["layer_types"] = [str(random.choice(["sliding_attention", "full_attention"])) for _ in range(layers)]
        options["layer_types"][random.integers(layers)] = "sliding_attention"
    return options


def qwen2(random):
    options = llama_like(random)
    return Qwen2Config(**options, **some_windows(random, options["num_hidden_layers"]))


def qwen3(random):
    options = llama_like(random)
    return Qwen3Config(**options, **some_windows(random, options["num_hidden_layers"]), head_dim=int(random.choice([4, 8, 32])),
                       attention_bias=bool(random.integers(2)))


def mistral(random):
    options = llama_like(random)
    if random.integers(2):
        options["head_dim"] = int(random.choice([4, 6, 32]))
    return MistralConfig(**options, sliding_window=[None, int(random.integers(2, 30)), 4096][random.integers(3)])


def gemma(random):
    options = llama_like(random) | dict(hidden_act=str(random.choice(["gelu_pytorch_tanh", "gelu", "silu", "relu"])))
    return GemmaConfig(**options, head_dim=int(random.choice([4, 8, 32])), attention_bias=bool(random.integers(2)))


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


def bert_like(random):
    heads = int(random.integers(1, 6))
    return dict(hidden_size=heads * int(random.choice([8, 12, 16])), num_attention_heads=heads,
                num_hidden_layers=int(random.integers(1, 5)), intermediate_size=int(random.integers(1, 90)),
                max_position_embeddings=int(random.integers(12, 70)), type_vocab_size=int(random.integers(2, 4)),
                hidden_act=str(random.choice(ACTIVATIONS)), layer_norm_eps=float(random.choice([1e-12, 1e-5])))


def bert(random):
    return BertConfig(**bert_like(random))


def megatron_bert(random):
    return MegatronBertConfig(**bert_like(random))


def t5(random, version):
    heads = int(random.integers(1, 6))
    config = T5Config(d_model=int(random.choice([12, 24, 40])), d_kv=int(random.choice([3, 4, 8, 16])), d_ff=int(random.integers(1, 90)),
                      num_heads=heads, num_layers=int(random.integers(1, 4)),
                      num_decoder_layers=[None, int(random.integers(1, 4))][random.integers(2)],
                      relative_attention_num_buckets=int(random.choice([8, 16, 32])),
                      relative_attention_max_distance=int(random.choice([20, 40, 128])), dropout_rate=0.1,
                      layer_norm_epsilon=float(random.choice([1e-6, 1e-5])), decoder_start_token_id=0,
                      feed_forward_proj="gated-gelu" if version == "1.1" else "relu")
    config.scale_decoder_outputs = version == "1.0" if random.integers(4) else bool(random.integers(2))
    config.separate_head = bool(random.integers(2))
    return config


def t5_v10(random):
    return t5(random, "1.0")


def t5_v11(random):
    return t5(random, "1.1")


def experts(random, count):
    return {count: int(random.integers(2, 7)), "num_experts_per_tok": int(random.integers(1, 3)), "router_aux_loss_coef": 0.0}


def mixtral(random):
    options = llama_like(random)
    options["head_dim"] = options["hidden_size"] // options["num_attention_heads"]  # its rotary angles want to be told
    mixture = dict(experts(random, "num_local_experts"), num_experts_per_tok=2)  # the gate of one is one: no gradient
    return MixtralConfig(**options, **mixture)


def qwen2_moe(random):
    options = llama_like(random)
    layers = options["num_hidden_layers"] = int(random.integers(2, 5))
    return Qwen2MoeConfig(**options, **experts(random, "num_experts"), moe_intermediate_size=int(random.integers(1, 60)),
                          shared_expert_intermediate_size=int(random.integers(1, 60)), norm_topk_prob=bool(random.integers(2)),
                          decoder_sparse_step=int(random.integers(1, 3)), qkv_bias=bool(random.integers(2)),
                          mlp_only_layers=[[], [0]][random.integers(2)])


FAMILIES = [gpt2, llama, qwen2, neox, mistral, qwen3, gemma, bert, megatron_bert, t5_v10, t5_v11, mixtral, qwen2_moe]


def in_files(model, tensors):
    """Tensors by their names in memory, where all experts are one tensor, to those of files, where each has its own."""
    mixture = model.config.model_type == "mixtral"
    result = {}
    for name, tensor in tensors.items():
        stem, _, kind = name.rpartition("mlp.experts.")
        stem += "block_sparse_moe.experts." if mixture else "mlp.experts."
        if kind == "gate_up_proj":
            for e, both in enumerate(tensor):
                for part, half in zip(("w1", "w3") if mixture else ("gate_proj", "up_proj"), both.chunk(2)):
                    result[f"{stem}{e}.{part}.weight"] = half
        elif kind == "down_proj":
            result.update({f"{stem}{e}.{'w2' if mixture else 'down_proj'}.weight": one for e, one in enumerate(tensor)})
        else:
            result[name.replace(".mlp.gate.", ".block_sparse_moe.gate.") if mixture else name] = tensor
    return result


def is_t5(config):
    return config.model_type == "t5"


def is_bert(config):
    return config.model_type in ("bert", "megatron-bert")


def auto_class(config):
    """What transformers makes of such a model."""
    if is_t5(config):
        return T5ForConditionalGeneration
    if not is_bert(config):
        return AutoModelForCausalLM
    return AutoModelForPreTraining if config.architectures[0].endswith("PreTraining") else AutoModelForMaskedLM


def from_config(config):
    config._experts_implementation = "eager"  # grouped products have no fp64
    model = auto_class(config)._from_config(config) if is_t5(config) else auto_class(config).from_config(config)
    if getattr(config, "separate_head", False):  # transformers ties it whatever the configuration says
        model.lm_head.weight = torch.nn.Parameter(model.shared.weight.detach().clone())
    return model


def random_model(random, seed):
    config = FAMILIES[seed % len(FAMILIES)](random)
    config.vocab_size = int(random.integers(2, 400))
    config.tie_word_embeddings = is_t5(config) or bool(random.integers(2))
    if is_bert(config):
        config.tie_word_embeddings = True
        stem = "Bert" if config.model_type == "bert" else "MegatronBert"
        config.architectures = [stem + str(random.choice(["ForPreTraining", "ForMaskedLM"]))]
    elif not is_t5(config):
        config.bos_token_id, config.eos_token_id = 0, 1
    model = from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # gains off one, biases off zero, products that keep their scale
            gain = parameter.ndim == 1 and name.endswith("weight")
            deviation = 0.3 if parameter.ndim == 1 else max(parameter.shape) ** -0.5
            if is_t5(config) and name.endswith("Attention.q.weight"):  # its scores are not divided
                deviation *= config.d_kv ** -0.5
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
    for name, tensor in in_files(model, model.state_dict()).items():
        if name in ("lm_head.weight", "embed_out.weight"):
            if not getattr(model.config, "separate_head", not model.config.tie_word_embeddings) and random.integers(2):
                continue
            name = "embed_out.weight" if model.config.model_type == "gpt_neox" else name
        if is_t5(model.config) and name.endswith("embed_tokens.weight") and random.integers(2):
            continue  # copies of the one table
        if is_bert(model.config):
            if name.startswith("cls.predictions.decoder") and random.integers(2):
                continue
            if prefix:  # as old files have it
                name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            state[name] = tensor
            continue
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


def answer(model, batch):
    seen = torch.arange(batch["encoder.tokens"].shape[1])[None] < batch["encoder.key_end"][:, :1]
    return model(input_ids=batch["encoder.tokens"].long(), attention_mask=seen, decoder_input_ids=batch["tokens"].long()).logits


def losses_of(model, batch):
    """Logits by name, and losses."""
    tokens, labels = batch["tokens"].long(), batch["labels"].long()
    if not is_bert(model.config):
        logits = answer(model, batch) if is_t5(model.config) else model(tokens).logits
        return {"logits": logits}, [torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())]
    seen = torch.arange(tokens.shape[1])[None] < batch["key_end"][:, :1]
    result = model(tokens, attention_mask=seen.long(), token_type_ids=batch["token_types"].long())
    logits = {"logits": result.prediction_logits if "prediction_logits" in result else result.logits}
    hidden = batch["loss_mask"].bool()
    losses = [torch.nn.functional.cross_entropy(logits["logits"][hidden], labels[hidden])]
    if "seq_relationship_logits" in result:
        logits["segment_logits"] = result.seq_relationship_logits
        losses.append(torch.nn.functional.cross_entropy(logits["segment_logits"], batch["is_random"].long()))
    return logits, losses


def reference(model, batch, dtype=torch.float64):
    state = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    model.config.dtype = None
    model = from_config(model.config).to(dtype).eval()  # with rotary angles that were never rounded
    model.load_state_dict(state)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # PyTorch would drop the gradient of that row
    logits, losses = losses_of(model, batch)
    sum(losses).backward()
    gradients = in_files(model, {name: parameter.grad for name, parameter in model.named_parameters()})
    if model.config.model_type == "gpt_neox" and "lm_head.weight" in gradients:
        gradients["embed_out.weight"] = gradients.pop("lm_head.weight")
    return {name: x.detach() for name, x in logits.items()}, [loss.item() for loss in losses], gradients


def random_batch(config, random):
    length = int(random.integers(1, min(getattr(config, "max_position_embeddings", 40), 40) + 1))
    batch = {name: random.integers(0, config.vocab_size, (2, length)) for name in ("tokens", "labels")}
    if is_t5(config):
        encoder = int(random.integers(1, 60))
        ends = numpy.array([[encoder], [random.integers(1, encoder + 1)]])
        batch.update({"encoder.tokens": random.integers(0, config.vocab_size, (2, encoder)),
                      "encoder.key_end": numpy.broadcast_to(ends, (2, encoder)).copy(),
                      "encoder_key_end": numpy.broadcast_to(ends, (2, length)).copy()})
    if is_bert(config):
        ends = random.integers((length + 1) // 2, length + 1, (2, 1))
        mask = (random.random((2, length)) < 0.3) & (numpy.arange(length) < ends)
        mask[0, 0] = True
        batch.update(token_types=random.integers(0, config.type_vocab_size, (2, length)), is_random=random.integers(0, 2, 2),
                     key_end=numpy.broadcast_to(ends, (2, length)).copy(), loss_mask=mask)
    return {name: torch.from_numpy(x).to(torch.float32 if name == "loss_mask" else torch.int32) for name, x in batch.items()}


def check_one(program, root, seed):
    random = numpy.random.default_rng(seed)
    torch.manual_seed(seed)
    model = random_model(random, seed)
    save(model, root / "theirs", random)
    batch = random_batch(model.config, random)
    save_file(batch, root / "theirs/tokens.safetensors")
    shard = str(random.choice([5_000_000_000, 20_000]))
    subprocess.run([program, root / "theirs", root / "ours", shard], check=True)
    place = f"seed {seed}, {model.config.model_type}"

    again, report = auto_class(model.config).from_pretrained(root / "ours", output_loading_info=True)
    if is_t5(model.config):
        again.config.separate_head = model.config.separate_head
    assert not any(report.values()), f"{place}: {report}"
    assert again.dtype == model.dtype, f"{place}: {again.dtype} instead of {model.dtype}"
    for (name, before), (_, after) in zip(model.state_dict().items(), again.state_dict().items()):
        assert torch.equal(before, after), f"{place}: {name} differs"
    for key in ("layer_norm_epsilon", "rms_norm_eps", "layer_norm_eps", "tie_word_embeddings", "eos_token_id", "resid_pdrop",
                "head_dim", "use_parallel_residual", "attention_bias", "mlp_bias", "rope_parameters", "num_key_value_heads", "type_vocab_size",
                "use_sliding_window", "sliding_window", "layer_types",
                "scale_decoder_outputs", "num_decoder_layers", "d_kv", "d_ff", "relative_attention_max_distance", "decoder_start_token_id",
                "dropout_rate", "feed_forward_proj"):
        theirs, ours = getattr(model.config, key, None), getattr(again.config, key, None)
        if key == "rope_parameters" and theirs:
            theirs, ours = ({k: v for k, v in x.items() if k not in ("beta_fast", "beta_slow", "truncate")} for x in (theirs, ours))
        assert theirs == ours or key == "head_dim" and theirs is None, f"{place}: {key} {ours} instead of {theirs}"
    computed = load_file(root / "ours/computed.safetensors")
    for whose in (again, model):  # both are the same function
        expected, losses, gradients = reference(whose, batch)
        for name, logits in expected.items():
            error = (computed[name].double() - logits).abs().max().item() / logits.abs().max().item()
            assert error < 2e-5, f"{place}: {name} differ by {error}"
        ours = computed["losses"].tolist()[:len(losses)]  # a mixture also reports its balance and loads
        assert len(ours) == len(losses) and all(abs(a - b) < 1e-5 * b for a, b in zip(ours, losses)), f"{place}: losses {ours}, not {losses}"
    rounded = reference(model, batch, torch.float32)[2]
    worst = 0.0
    overall = max(gradient.abs().max().item() for gradient in gradients.values())
    for name, gradient in gradients.items():
        largest, own = gradient.abs().max().item(), computed.pop("grad." + name)
        if largest < 1e-8 * overall:  # zero but for rounding, as of queries that see one key
            assert own.abs().max().item() < 1e-6 * overall, f"{place}: gradient of {name}"
            continue
        for part, value in ((".query.", ".value."), (".key.", ".value."), ("Attention.q.", "Attention.v."), ("Attention.k.", "Attention.v.")):
            if part in name:  # a difference of values' gradients: next to nothing where queries see keys that hardly differ
                largest = max(largest, gradients[name.replace(part, value)].abs().max().item())
        ours, theirs = ((x.double() - gradient).abs().max().item() / largest for x in (own, rounded[name]))
        worst = max(worst, ours)
        assert ours < max(1e-5, 2 * theirs), f"{place}: gradient of {name} {list(gradient.shape)}: {ours}, in PyTorch's fp32 {theirs}"
    assert set(computed) == {"losses", *expected}, f"{place}: {set(computed)}"
    return error, worst


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 165
    wanted = [family for family in FAMILIES if sys.argv[3:] in ([], [family.__name__])]
    worst, seeds = (0.0, 0.0), [seed for seed in range(rounds) if FAMILIES[seed % len(FAMILIES)] in wanted]
    for seed in seeds:
        with tempfile.TemporaryDirectory() as root:
            worst = tuple(map(max, worst, check_one(program, pathlib.Path(root), seed)))
    print(f"{len(seeds)} models: every number kept, logits within {worst[0]:.1e}, gradients within {worst[1]:.1e}")


main()
