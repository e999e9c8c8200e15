"""Packs checkpoints that Megatron-DeepSpeed (6acc370a) and DeepSpeed wrote, and says what is in them.

usage: foreign.py CHECKPOINTS OUTPUT

CHECKPOINTS/NAME holds one folder iter_N or global_stepN, and losses.txt, the losses of the steps after
it. OUTPUT/NAME.zip is that folder; OUTPUT/expected.json has for each checkpoint the CRC-32 of every
tensor that it means, under the names and in the layout of Bloomery, merged here with torch alone.
Megatron's modules must be importable, since its arguments are objects of theirs.
"""
import glob, json, os, re, shutil, sys, zipfile, zlib
import torch

NAMES = {"language_model.embedding.word_embeddings.weight": "embedding.tokens.weight",
         "language_model.embedding.position_embeddings.weight": "embedding.positions.weight",
         "language_model.encoder.final_layernorm.weight": "final_norm.gain",
         "language_model.encoder.final_layernorm.bias": "final_norm.bias",
         "language_model.output_layer.weight": "head.weight",
         "language_model.embedding.tokentype_embeddings.weight": "embedding.token_types.weight",
         "language_model.pooler.dense.weight": "pooler.weight", "language_model.pooler.dense.bias": "pooler.bias",
         "lm_head.bias": "head.bias", "lm_head.dense.weight": "head.transform.weight",
         "lm_head.dense.bias": "head.transform.bias", "lm_head.layernorm.weight": "head.norm.gain",
         "lm_head.layernorm.bias": "head.norm.bias",
         "binary_head.weight": "binary_head.weight", "binary_head.bias": "binary_head.bias"}
T5_NAMES = {"language_model.encoder.final_layernorm": "encoder.final_norm",
            "language_model.decoder.final_layernorm": "final_norm"}
T5_LAYER = {"post_attention_layernorm": "cross_norm", "post_inter_attention_layernorm": "norm_2",
            "inter_attention.query": "cross.query", "inter_attention.key_value": "cross.key_value",
            "inter_attention.dense": "cross.projection"}
LAYER = {"input_layernorm": "norm_1", "post_attention_layernorm": "norm_2",
         "self_attention.query_key_value": "attention.qkv", "self_attention.dense": "attention.projection",
         "mlp.dense_h_to_4h": "mlp.up", "mlp.dense_4h_to_h": "mlp.down",
         "mlp.deepspeed_moe.gate.wg": "moe.router", "mlp.coefficient": "moe.coefficient",
         "mlp.mlp.dense_h_to_4h": "moe.residual.up", "mlp.mlp.dense_4h_to_h": "moe.residual.down",
         "mlp.deepspeed_moe.experts.dense_h_to_4h": "moe.experts.up",
         "mlp.deepspeed_moe.experts.dense_4h_to_h": "moe.experts.down"}
EXPERT = ".deepspeed_experts."
KINDS = ("", "/exp_avg", "/exp_avg_sq")


def load(path):
    return torch.load(path, weights_only=False, map_location="cpu")


def flattened(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flattened(value, prefix + key + ".")
        elif torch.is_tensor(value):
            yield prefix + key, value


def plain(name):
    """The name without pipeline."""
    if name.startswith("tied_modules.embed."):
        return "language_model.embedding." + name[len("tied_modules.embed."):]
    found = re.match(r"(\d+)\.(.*)", name)
    if not found:
        return name
    layer, rest = int(found[1]), found[2]
    if rest == "lm_head.weight":
        return "language_model.output_layer.weight"
    if "embeddings" in rest:
        return "language_model.embedding." + rest
    if rest in ("weight", "bias"):
        return "language_model.encoder.final_layernorm." + rest
    return f"language_model.encoder.layers.{layer - 2}.{rest}"


def ours(name, t5):
    place, last = name.rsplit(".", 1)
    gain = "gain" if last == "weight" else last
    if t5 and place in T5_NAMES:
        return f"{T5_NAMES[place]}.{gain}"
    if name in NAMES:
        return NAMES[name]
    found = re.match(r"language_model\.(encoder|decoder)\.layers\.(\d+)\.(.*)$", place)
    decoder = found[1] == "decoder"
    part = {**LAYER, **T5_LAYER}[found[3]] if decoder else LAYER[found[3]]
    return f"{found[1] if t5 else 'blocks'}.{found[2]}.{part}.{gain if 'norm' in part else last}"


def merged(ranks, args):
    out = {}
    for name in ranks[0]:
        parts = [rank[name] for rank in ranks]
        if ".mlp.mlp." in name and not args.enable_expert_tensor_parallelism:
            out[name] = parts[0]
        elif name.endswith(("_attention.dense.weight", "dense_4h_to_h.weight")):
            out[name] = torch.cat(parts, 1)
        elif "layernorm" in name or "position" in name or name.endswith(("dense.bias", "4h_to_h.bias")) or \
                "gate" in name or "coefficient" in name or "tokentype" in name or "lm_head.dense" in name or \
                "pooler" in name or "binary" in name:
            out[name] = parts[0]
        elif args.swiglu and "h_to_4h" in name:
            out[name] = torch.cat([torch.cat([p.chunk(2)[i] for p in parts]) for i in (0, 1)])
        else:
            out[name] = torch.cat(parts)
    return out


def in_order(weights):
    first = [n for n in weights if n.startswith("language_model")] + [n for n in weights if "for_head" in n]
    order = first + [n for n in weights if n not in first]
    decays = [n for n in order if weights[n].ndim > 1]
    return decays + [n for n in order if n not in decays]


def megatron_rank(folder, stage, args):
    file = load(folder + "/model_optim_rng.pt")
    stages, split = args.pipeline_model_parallel_size, getattr(args, "pipeline_model_parallel_split_rank", None)
    chunks = [file[key] for key in ("model", "model0", "model1") if key in file]
    weights, names_of_chunk = {}, []
    for i, chunk in enumerate(chunks):
        before = len(weights)
        first_layer = 0 if split else (i * stages + stage) * args.num_layers // (stages * len(chunks))
        weights.update({re.sub(r"layers\.(\d+)", lambda m: f"layers.{int(m[1]) + first_layer}", name): value
                        for name, value in flattened(chunk)})
        names_of_chunk.append(list(weights)[before:])
    states = {kind: {} for kind in KINDS}
    states[""] = dict(weights)
    optimizer = file["optimizer"]
    if os.path.exists(folder + "/distrib_optim.pt"):
        for i, names in enumerate(names_of_chunk):
            buffers = next(iter(load(folder + "/distrib_optim.pt")[i].values()))
            end = sum(weights[name].numel() for name in names)
            for name in names:
                weight = weights[name]
                end -= weight.numel()
                for kind, key in zip(KINDS, ("param", "exp_avg", "exp_avg_sq")):
                    states[kind][name] = buffers[key][end:end + weight.numel()].view(weight.shape)
    else:
        inner = optimizer.get("optimizer", optimizer)
        copies = [t for group in optimizer.get("fp32_from_fp16_params", []) for t in group]
        for i, name in enumerate(in_order(weights)):
            for kind in KINDS[1:]:
                states[kind][name] = inner["state"][i][kind[1:]]
            if copies:
                states[""][name] = copies[i]
    for name, weight in weights.items():  # whatever the order, exact weights are those of the model
        assert torch.equal(states[""][name].to(weight.dtype), weight), (folder, name)
    return {kind: {n: t for n, t in tensors.items() if "for_head" not in n} for kind, tensors in states.items()}


def zero_rank(path, files, model, tensor_rank):
    parts = [load(file)["optimizer_state_dict"] for file in files]
    states = {kind: {} for kind in KINDS}
    if "fp32_flat_groups" in parts[0]:
        at = 0
        for name, shape in ((n, s) for group in model["param_shapes"] for n, s in group.items()):
            share = -(-shape.numel() // len(parts))
            for kind in KINDS:
                whole = [torch.cat(p["fp32_flat_groups"]) if not kind else torch.cat(
                    [p["optimizer_state_dict"]["state"][i][kind[1:]] for i in range(len(p["fp32_flat_groups"]))])
                    for p in parts]
                states[kind][plain(name)] = torch.cat([w[at:at + share] for w in whole])[:shape.numel()].view(shape)
            at += share
        return states
    shapes = {}
    for group in model["param_shapes"] or []:
        shapes.update(group)
    for file in [] if shapes else glob.glob(f"{path}/layer_*-model_{tensor_rank:02d}-model_states.pt"):
        layer = int(re.search(r"layer_(\d+)-", file)[1])
        for name, value in load(file).items():
            shapes[f"{layer}.{name}"] = shapes["tied_modules.embed." + name] = value.shape
    for group in range(len(parts[0]["single_partition_of_fp32_groups"])):
        for name in dict.fromkeys(n for p in parts for n in p["param_slice_mappings"][group]):
            for kind in [] if EXPERT in name else KINDS:
                pieces = []
                for part in parts:
                    place = part["param_slice_mappings"][group].get(name)
                    if place is not None:
                        buffer = (part["base_optimizer_state"]["state"][group][kind[1:]] if kind
                                  else part["single_partition_of_fp32_groups"][group])
                        pieces.append(buffer[place.start:place.start + place.numel])
                states[kind][plain(name)] = torch.cat(pieces).view(shapes[name])
    return states


def experts_of_stage(path, stage, args):
    """Of every tensor rank that has a part of them, else of one: what belongs to each expert by its number of all."""
    tensor, cut, width = args.tensor_model_parallel_size, args.enable_expert_tensor_parallelism, args.moe_expert_parallel_size
    counts = {}
    for file in glob.glob(f"{path}/layer_*_expert_*"):
        for name in map(plain, load(file)):
            layer, expert = (int(re.search(word + r"\.(\d+)\.", name)[1]) for word in ("layers", "deepspeed_experts"))
            counts[layer] = max(counts.get(layer, 0), expert + 1)
    data = len(glob.glob(f"{path}/*zero_pp_rank_*_mp_rank_00_optim_states.pt"))
    locals_ = []
    for rank in range(tensor if cut else 1):
        states = {kind: {} for kind in KINDS}
        for expert_rank in range(width):
            places = range(expert_rank, data if cut else data * tensor, width)
            files = [(p, rank) if cut else (p // tensor, p % tensor) for p in places]
            shares = [load(glob.glob(f"{path}/*zero_pp_rank_{d}_mp_rank_{stage * tensor + t:02d}_optim_states.pt")[0])
                      ["optimizer_state_dict"] for d, t in files]
            for group, mapping in enumerate(shares[0]["param_slice_mappings"]):
                for name in dict.fromkeys(n for s in shares for n in s["param_slice_mappings"][group] if EXPERT in n):
                    layer, held = (int(re.search(word + r"\.(\d+)\.", plain(name))[1]) for word in ("layers", "deepspeed_experts"))
                    whole = plain(name).replace(f"{EXPERT}{held}.", f"{EXPERT}{held + expert_rank * counts[layer] // width}.")
                    for kind in KINDS:
                        pieces = []
                        for share in shares:
                            place = share["param_slice_mappings"][group].get(name)
                            if place is not None:
                                buffer = (share["base_optimizer_state"]["state"][group][kind[1:]] if kind
                                          else share["single_partition_of_fp32_groups"][group])
                                pieces.append(buffer[place.start:place.start + place.numel])
                        value = torch.cat(pieces)
                        rows = args.hidden_size if "4h_to_h" in name else value.numel() // args.hidden_size
                        states[kind][whole] = value.view(rows, -1) if name.endswith("weight") else value
        locals_.append(states)
    return locals_


def plain_experts(path, args):
    """The same of a run without ZeRO, tensor and pipeline ranks: fp32 copies and moments lie in the order of names."""
    states = {kind: {} for kind in KINDS}
    for rank in range(args.moe_expert_parallel_size):
        optimizer = load(f"{path}/expp_rank_{rank}_mp_rank_00_optim_states.pt")["optimizer"]
        inner = optimizer["optimizer_state_dict"]
        at = sum(len(g["params"]) for g in inner["param_groups"] if not g.get("moe"))
        copies = [t for group in optimizer["fp32_groups"] for t in group]
        for word in ("weight", "bias"):
            for layer in range(args.num_layers):
                for expert in range(rank * args.num_experts[0] // args.moe_expert_parallel_size,
                                    (rank + 1) * args.num_experts[0] // args.moe_expert_parallel_size):
                    for part in ("dense_h_to_4h", "dense_4h_to_h"):
                        name = f"language_model.encoder.layers.{layer}.mlp.deepspeed_moe.experts{EXPERT}{expert}.{part}.{word}"
                        for kind in KINDS:
                            states[kind][name] = inner["state"][at][kind[1:]] if kind else copies[at]
                        at += 1
    return [states]


def stacked(tensors):
    """All experts of a layer as one tensor."""
    out, experts = {}, {}
    for name, value in tensors.items():
        found = re.match(rf"(.*){EXPERT}(\d+)(\..*)", name)
        if found:
            experts.setdefault(found[1] + found[3], {})[int(found[2])] = value
        else:
            out[name] = value
    out.update({name: torch.stack([parts[i] for i in range(len(parts))]) for name, parts in experts.items()})
    return out


def tied(path, tensor_rank, args):
    return not os.path.exists(f"{path}/layer_{args.num_layers + 3:02d}-model_{tensor_rank:02d}-model_states.pt")


def plain_rank(path, model, tensor_rank, stage, args):
    """Of a pipeline with as many layers in each stage; the last one has the embedding too, and what is behind the layers."""
    weights, count = {}, args.num_layers // args.pipeline_model_parallel_size
    last = stage == args.pipeline_model_parallel_size - 1
    for file in sorted(glob.glob(f"{path}/layer_*-model_{tensor_rank:02d}-model_states.pt")):
        layer = int(re.search(r"layer_(\d+)-", file)[1])
        here = layer == 1 or 0 <= layer - 2 - stage * count < count or last and layer - 2 >= args.num_layers
        if not here or layer == 1 and stage > 0 and not (last and tied(path, tensor_rank, args)):
            continue
        weights.update({plain(f"{layer}.{name}"): value for name, value in load(file).items()})
    weights.update({name: value for name, value in flattened(model["module"] or {}) if EXPERT not in name})
    optimizer = model["optimizer"]
    copies = [t for group in optimizer["fp32_groups"] for t in group]
    state = optimizer["optimizer_state_dict"]["state"]
    order = in_order(weights)
    return {kind: {n: state[i][kind[1:]] if kind else copies[i] for i, n in enumerate(order)} for kind in KINDS}


def model_file(path, place):
    return sorted(f for f in glob.glob(f"{path}/*mp_rank_{place:02d}_model_states.pt") if "expert" not in f)[0]


def tensors_of(path):
    first = sorted(glob.glob(path + "/mp_rank_00*/model_optim_rng.pt"))
    if os.path.isdir(path + "/zero"):
        return universal(path)
    model = load(first[0] if first else model_file(path, 0))
    args, info = model["args"], model["universal_checkpoint_info"]
    stages, ranks = args.pipeline_model_parallel_size, args.tensor_model_parallel_size
    all_states = {kind: {} for kind in KINDS}
    for stage in range(stages):
        locals_ = []
        for rank in range(ranks):
            if first:
                folder = f"{path}/mp_rank_{rank:02d}" + (f"_{stage:03d}" if stages > 1 else "")
                locals_.append(megatron_rank(folder, stage, args))
                continue
            place = stage * ranks + rank
            files = sorted(glob.glob(f"{path}/*zero_pp_rank_*_mp_rank_{place:02d}_optim_states.pt"))
            model = load(model_file(path, place))
            locals_.append(zero_rank(path, files, model, rank) if files else plain_rank(path, model, rank, stage, args))
        for kind in KINDS:
            for name, value in merged([local[kind] for local in locals_], args).items():
                all_states[kind].setdefault(name, value)
        if max(args.num_experts) > 1:
            experts = experts_of_stage(path, stage, args) if files else plain_experts(path, args)
            for kind in KINDS:
                all_states[kind].update(merged([local[kind] for local in experts], args))
    return {kind: stacked(tensors) for kind, tensors in all_states.items()}, info


def universal(path):
    states = {kind: {} for kind in KINDS}
    for folder in glob.glob(path + "/zero/*/"):
        name = plain(os.path.basename(folder.rstrip("/")))
        for kind, file in zip(KINDS, ("fp32", "exp_avg", "exp_avg_sq")):
            states[kind][name] = load(f"{folder}{file}.pt")["param"]
    return states, load(path + "/mp_rank_00_model_states.pt")["universal_checkpoint_info"]


def checksums(path):
    states, info = tensors_of(path)
    vocabulary, found = info["original_vocab_size"], {}
    t5 = any("decoder" in name for name in states[""])
    for kind, tensors in states.items():
        for name, tensor in tensors.items():
            parts = {ours(name, t5): tensor}
            if tensor.shape[0] > vocabulary and "word_embeddings" in name or name.endswith(("output_layer.weight", "lm_head.bias")):
                parts = {ours(name, t5): tensor[:vocabulary], ours(name, t5) + "/padding": tensor[vocabulary:]}
            for part, value in parts.items():
                if value.numel():
                    found[part + kind] = zlib.crc32(value.detach().contiguous().numpy().tobytes())
    return found


OLDER = {"mega_fp32_v0": ("mega_fp32_t1p1", 0), "mega_fp16_v1": ("mega_fp16_t2p1", 1.0)}


def aged(tensor, args, version):
    """Fused queries, keys and values in the order of an older version."""
    heads = args.num_attention_heads // args.tensor_model_parallel_size
    parts = tensor.view(heads, 3, args.kv_channels, -1)
    return (parts.permute(1, 0, 2, 3) if version == 0 else parts.permute(0, 2, 1, 3)).reshape(tensor.shape).contiguous()


def write_older(source, target, version):
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in glob.glob(target + "/iter_*/mp_rank_*/model_optim_rng.pt"):
        file = load(path)
        args, weights = file["args"], dict(flattened(file["model"]))
        optimizer = file["optimizer"]
        state = optimizer.get("optimizer", optimizer)["state"]
        copies = [t for group in optimizer.get("fp32_from_fp16_params", []) for t in group]
        for i, name in enumerate(in_order(weights)):
            if "query_key_value" in name:
                tensors = [weights[name], state[i]["exp_avg"], state[i]["exp_avg_sq"]] + copies[i:i + 1]
                for tensor in tensors:
                    tensor.data.copy_(aged(tensor.data, args, version))
        args.model_parallel_size = args.tensor_model_parallel_size  # its older name
        del args.tensor_model_parallel_size, file["checkpoint_version"]  # which came with version 1
        torch.save({**file, **({"checkpoint_version": version} if version else {})}, path)


def main(source, output):
    expected = {}
    for name, (model, version) in OLDER.items():
        write_older(f"{source}/{model}", f"{source}/{name}", version)
    for name in sorted(os.listdir(source)):
        folders = [f for f in sorted(os.listdir(f"{source}/{name}")) if re.match("iter_|global_step", f)]
        with zipfile.ZipFile(f"{output}/{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for root, _, files in os.walk(f"{source}/{name}/{folders[0]}"):
                for file in sorted(files):
                    path = os.path.join(root, file)
                    packed.write(path, os.path.relpath(path, f"{source}/{name}"))
        losses = open(f"{source}/{name}/losses.txt").read().split()
        expected[name] = {"losses": [float(x) for x in losses], "tensors": checksums(f"{source}/{OLDER.get(name, (name,))[0]}/{folders[0]}")}
    with open(f"{output}/expected.json", "w") as file:
        json.dump(expected, file, indent=0, sort_keys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
