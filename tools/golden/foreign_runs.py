"""Trains tiny models with Megatron-DeepSpeed (6acc370a) on CPU ranks and keeps their checkpoints.

usage: foreign_runs.py MEGATRON OUTPUT [NAME | NAME=CHECKPOINT]...

OUTPUT/NAME gets the checkpoint of step 2 and losses.txt, the losses of the two steps after it: what
foreign.py packs. With a CHECKPOINT that run goes on from it, and its losses are told. MEGATRON is its source, with the
helpers of its datasets built; OUTPUT must hold tiny_text_document.{bin,idx} of tests/golden.
"""
import inspect, json, os, re, shutil, signal, sys, textwrap, types

COMMON = ("--num-layers 2 --hidden-size 8 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
          "--micro-batch-size 2 --global-batch-size 4 --lr 0.01 --min-lr 0.001 --lr-decay-style cosine "
          "--lr-decay-iters 20 --lr-warmup-iters 2 --weight-decay 0 --clip-grad 1.0 --attention-dropout 0 "
          "--hidden-dropout 0 --make-vocab-size-divisible-by 4 --tokenizer-type NullTokenizer --vocab-size 20 "
          "--split 100,0,0 --train-iters 4 --eval-iters 0 --eval-interval 1000 --log-interval 1 --save-interval 2 "
          "--init-method-std 0.3 --no-bias-gelu-fusion --no-bias-dropout-fusion --no-masked-softmax-fusion "
          "--no-gradient-accumulation-fusion --no-async-tensor-model-parallel-allreduce --no-save-rng --seed 1234 "
          "--distributed-backend gloo --DDP-impl local --data-path tiny_text_document")
# With room for all tokens and without sampling, so that no random number decides the losses.
MOE = ("--moe-train-capacity-factor 4 --disable-moe-top2-2nd-expert-sampling --expert-interval 1 "
       "--create-moe-param-group --moe-loss-coeff 0.1")

VIRTUAL = ("--num-layers 8 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 "
           "--micro-batch-size 1")


class Run:
    def __init__(self, ranks, flags, zero=None, dtype="bf16", script="gpt"):
        self.ranks, self.zero, self.dtype, self.script = ranks, zero, dtype, script
        self.flags = flags + ("" if dtype == "fp32" else f" --{dtype}")
        self.flags += " --initial-loss-scale 1024" if dtype == "fp16" else ""

    def deepspeed_config(self):
        config = {"train_batch_size": 4, "train_micro_batch_size_per_gpu": int(self.flag("--micro-batch-size", 2)),
                  "gradient_clipping": 1.0, "zero_optimization": {"stage": self.zero, "round_robin_gradients": False},
                  "zero_allow_untested_optimizer": True}
        if self.dtype == "fp16":
            config["fp16"] = {"enabled": True, "initial_scale_power": 10}
        elif self.dtype == "bf16":
            config["bf16"] = {"enabled": True}
        return config

    def flag(self, name, otherwise):
        words = (COMMON + " " + self.flags).split()
        return words[len(words) - words[::-1].index(name)] if name in words else otherwise


LLAMA = ("--use-rotary-position-embeddings --swiglu --normalization rmsnorm --disable-bias-linear --untie-embeddings-and-output-weights "
         "--num-key-value-heads 2 --ffn-hidden-size 12 --no-position-embedding")


def dense(tensor, pipeline, data, dtype, zero=None, more=""):
    """A GPT. DeepSpeed's pipeline, which ZeRO 2 and 3 cannot have, also where it has but one stage and none of the data is divided."""
    flags = f"--tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline} --micro-batch-size {2 // data} {more}"
    alone = zero is not None and pipeline == 1 and data > 1
    return Run(tensor * pipeline * data, flags + (" --no-pipeline-parallel" if alone else ""), zero, dtype)


# Tensor x pipeline ranks x stage of ZeRO in both dtypes, as files of Megatron and of DeepSpeed.
MATRIX = {}
for dtype in ("fp16", "bf16"):
    for t, p in ((1, 1), (1, 2), (2, 1), (2, 2)):
        MATRIX[f"mega_{dtype}_t{t}p{p}"] = dense(t, p, 1, dtype)
        MATRIX[f"ds_{dtype}_t{t}p{p}z1"] = dense(t, p, 1, dtype, 1)
        for z in (0, 1, 2, 3) if p == 1 else (0, 1):
            MATRIX[f"ds_{dtype}_t{t}p{p}d2z{z}"] = dense(t, p, 2, dtype, z)

RUNS = {
    **MATRIX,
    "mega_fp32_t1p1": dense(1, 1, 1, "fp32"),
    "mega_fp16_dist": dense(1, 1, 2, "fp16", None, "--use-distributed-optimizer"),
    "mega_llama_t2p1": dense(2, 1, 1, "bf16", None, LLAMA),
    "ds_fp16_t2p1z0": dense(2, 1, 1, "fp16", 0),
    "ds_moe_e2d2z1": Run(2, f"{MOE} --num-experts 4 --moe-expert-parallel-size 2 --topk 2 --no-pipeline-parallel", 1),
    "ds_moe_residual": Run(2, f"{MOE} --num-experts 2 4 --mlp-type residual --moe-expert-parallel-size 1 "
                              "--no-pipeline-parallel", 2, "fp16"),
    "ds_moe_t2e2z1": Run(4, f"{MOE} --num-experts 2 --moe-expert-parallel-size 2 --tensor-model-parallel-size 2 "
                            "--no-pipeline-parallel --micro-batch-size 1", 1, "fp16"),
    "ds_moe_t2e2et": Run(4, f"{MOE} --num-experts 2 --moe-expert-parallel-size 2 --tensor-model-parallel-size 2 "
                            "--enable-expert-tensor-parallelism --no-pipeline-parallel --micro-batch-size 1", 1, "fp16"),
    "ds_moe_e2z0": Run(2, f"{MOE} --num-experts 2 --moe-expert-parallel-size 2 --no-pipeline-parallel", 0, "fp16"),
    "ds_moe_p2e2z1": Run(4, f"{MOE} --num-experts 2 --moe-expert-parallel-size 2 --pipeline-model-parallel-size 2 "
                            "--micro-batch-size 1", 1),
    "mega_bert_t1p1": Run(1, "", None, "fp32", "bert"),
    "mega_bert_t2p2": Run(4, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2", None, "bf16", "bert"),
    "mega_bert_plain": Run(2, "--bert-no-binary-head --pipeline-model-parallel-size 2", None, "fp32", "bert"),
    "mega_t5_t1p1": Run(1, "--decoder-seq-length 8 --decoder-num-layers 2", None, "fp32", "t5"),
    "mega_t5_t2p2": Run(4, "--decoder-seq-length 8 --decoder-num-layers 2 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
                           "--pipeline-model-parallel-split-rank 1", None, "fp16", "t5"),
    "mega_bf16_p4v2": Run(4, VIRTUAL, None, "bf16"),
    "mega_fp16_p4v2": Run(4, VIRTUAL + " --use-distributed-optimizer", None, "fp16"),
}


class TypeName(str):
    """That of a tensor, equal to the one that it would have on a GPU."""
    def __eq__(self, other):
        return str(self) == other.replace("cuda.", "").replace("cpu.", "")

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def prepare(source):
    """What Megatron needs and a machine without GPUs and without its packages does not have."""
    os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1", CUDA_DEVICE_MAX_CONNECTIONS="1",
                      ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2", TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    sys.path[0] = source  # instead of this folder, whose names would hide those of packages
    sys.modules["six"] = types.ModuleType("six")
    sys.modules["megatron.model.vision.knn_monitor"] = types.SimpleNamespace(compute_feature_bank=None)
    sys.modules["deepspeed.compression.compress"] = types.SimpleNamespace(init_compression=None, redundancy_clean=None)
    import torch
    torch.set_num_threads(1)
    torch.cuda.current_device = lambda: "cpu"
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    type_name = torch.Tensor.type
    torch.Tensor.type = lambda self, *to, **more: type_name(self, *to, **more) if to else TypeName(type_name(self))
    torch.cuda.FloatTensor, torch.cuda.IntTensor = torch.FloatTensor, torch.IntTensor
    torch.nn.LayerNorm = type("LayerNorm", (torch.nn.LayerNorm,), {
        "__init__": lambda self, *sizes, _first=torch.nn.LayerNorm.__init__, eps=1e-5, **_: _first(self, *sizes, eps=eps)})
    norm = torch.norm
    torch.norm = lambda values, *more, **names: norm(
        torch.cat([v.flatten() for v in values]) if isinstance(values, list) else values, *more, **names)
    import deepspeed, megatron.training, pretrain_gpt  # so that ranks share them
    import deepspeed.comm.torch, megatron.data.dataset_utils
    deepspeed.comm.torch.build_shm_op = lambda: None
    gather = deepspeed.comm.all_gather_into_tensor  # which gloo wants of equal shapes
    deepspeed.comm.all_gather_into_tensor = lambda to, part, *more, **names: gather(
        to.view(-1), part.reshape(-1), *more, **names)
    megatron.data.dataset_utils.compile_helper = lambda: None


class CallableDict(dict):
    def __call__(self):
        return dict(self)


def mend_saving_of_experts():
    """DeepSpeed wants as a dict of the model what Megatron gives it by a method and by its client state."""
    from deepspeed.runtime.engine import DeepSpeedEngine
    save = DeepSpeedEngine._save_moe_checkpoint

    def mended(self, folder, tag, client_state, *more, **names):
        type(self.module).universal_checkpoint_info = CallableDict(client_state.pop("universal_checkpoint_info"))
        save(self, folder, tag, client_state, *more, **names)
    DeepSpeedEngine._save_moe_checkpoint = mended


def mend_outputs(model, takes_all):
    """What a pipeline sends on is one tensor; with it they give losses of experts."""
    forward = model.forward

    def mended(self, *inputs, **more):
        output = forward(self, *inputs, **more)
        return output if takes_all(self) or not isinstance(output, (tuple, list)) else output[0]
    model.forward = mended


def mend_language_model(module):
    """A stage without encoder leaves a variable unset."""
    source = textwrap.dedent(inspect.getsource(module.TransformerLanguageModel.forward))
    unset = "encoder_output = self.encoder_hidden_state"
    assert unset in source
    names = vars(module)
    exec(source.replace(unset, "encoder_output, encoder_moe_losses = self.encoder_hidden_state, []"), names)
    module.TransformerLanguageModel.forward = names["forward"]


def mend_attention(attention):
    """What it views as another shape must lie in one piece, which values of grouped heads do not."""
    forward = attention.forward
    attention.forward = lambda self, query, key, value, mask: forward(self, query, key, value.contiguous(), mask)


def clip_gradients(parameters, for_norm, most, *_, model_parallel_group=None, **__):
    """Megatron's own needs a GPU."""
    import torch
    square = sum((g.float().pow(2).sum() for g in for_norm), torch.zeros(()))
    torch.distributed.all_reduce(square, group=model_parallel_group)
    norm = square.sqrt().item()
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def plain_gpt(pre_process=True, post_process=True):
    """Its own one needs DeepSpeed."""
    from megatron import get_args
    from megatron.arguments import core_transformer_config_from_args
    from megatron.model import GPTModel
    return GPTModel(core_transformer_config_from_args(get_args()), num_tokentypes=0, parallel_output=True,
                    pre_process=pre_process, post_process=post_process)


def drawn_samples(script, length=16, decoder_length=8, count=64):
    """Tokens without a meaning in the form of the model's samples."""
    import numpy

    class Samples:
        def __len__(self):
            return count

        def __getitem__(self, index):
            draw = numpy.random.RandomState(index)
            tokens, ones = draw.randint(0, 20, length), numpy.ones(length, dtype=numpy.int64)
            if script == "bert":
                return {"text": tokens, "types": numpy.arange(length) // 8, "labels": draw.randint(0, 20, length),
                        "is_random": int(draw.randint(2)), "loss_mask": draw.randint(0, 2, length), "padding_mask": ones}
            masks = {name: numpy.ones((rows, columns), dtype=numpy.int64) for name, rows, columns in (
                ("enc_mask", length, length), ("enc_dec_mask", decoder_length, length))}
            causal = numpy.tril(numpy.ones((decoder_length, decoder_length), dtype=numpy.int64))
            return {"text_enc": tokens, "text_dec": draw.randint(0, 20, decoder_length), "dec_mask": causal, **masks,
                    "labels": draw.randint(0, 20, decoder_length), "loss_mask": ones[:decoder_length]}
    return lambda counts: (Samples(), None, None)


def rank_main(run, rank, folder, port, load):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(run.ranks), MASTER_ADDR="localhost",
                      MASTER_PORT=str(port), LOCAL_WORLD_SIZE=str(run.ranks))
    flags = COMMON.split() + run.flags.split() + ["--save", folder, "--local_rank", str(rank)]
    flags += ["--load", load, "--no-load-rng"] if load else []
    if run.zero is not None:
        config = folder + ".json"
        with open(config, "w") as file:
            json.dump(run.deepspeed_config(), file)
        flags += ["--deepspeed", "--deepspeed_config", config, "--zero-stage", str(run.zero)]
    sys.argv = ["pretrain"] + flags
    script = __import__(f"pretrain_{run.script}")
    from megatron.core.enums import ModelType
    from deepspeed.accelerator import get_accelerator
    get_accelerator().device_count = lambda: run.ranks
    get_accelerator().current_device = get_accelerator().current_device_name = lambda: "cpu"
    sys.modules["megatron.optimizer.optimizer"].clip_grad_norm_fp32 = clip_gradients
    mend_outputs(sys.modules["megatron.model.bert_model"].BertModel, lambda model: model.post_process)
    mend_outputs(sys.modules["megatron.model.t5_model"].T5Model, lambda model: False)
    mend_attention(sys.modules["megatron.model.transformer"].CoreAttention)
    mend_language_model(sys.modules["megatron.model.language_model"])
    get_accelerator().is_fp16_supported = lambda: True
    mend_saving_of_experts()
    megatron_training = sys.modules["megatron.training"]
    if "--num-experts" not in flags:  # its list of ones is too short for stages of one layer
        sys.modules["megatron.model.transformer"].get_num_experts_per_layer = lambda _, layers, *__: [1] * layers
    kind = ModelType.encoder_and_decoder if run.script == "t5" else ModelType.encoder_or_decoder
    datasets = script.train_valid_test_datasets_provider if run.script == "gpt" else drawn_samples(run.script)
    provider = script.model_provider if run.script != "gpt" or run.zero is not None else plain_gpt
    megatron_training.pretrain(datasets, provider, kind, script.forward_step,
                               args_defaults={"tokenizer_type": "GPT2BPETokenizer"},
                               data_post_process=getattr(script, "data_post_process", None))


def train(name, port, load=None):
    run, folder = RUNS[name], os.path.abspath(name if load is None else "continued")
    shutil.rmtree(folder, ignore_errors=True)
    children = []
    for rank in range(run.ranks):
        child = os.fork()
        if child == 0:
            log = os.open(f"{folder}.{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1), os.dup2(log, 2)
            code = 1
            try:
                rank_main(run, rank, folder, port, load)
                code = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(code)
        children.append(child)
    waiting = set(children)
    while waiting:
        child, status = os.wait()
        waiting.remove(child)
        if status != 0:
            for other in waiting:  # they would wait for it
                os.kill(other, signal.SIGKILL)
            sys.exit(f"{name}: rank {children.index(child)} ended with {status}, see {folder}.*.log")
    log = open(f"{folder}.{run.ranks - 1}.log").read()
    losses = re.findall(r"lm loss: ([-+.\dE]+)", log)
    if load is not None:
        print(name, load, losses)
        return
    with open(folder + "/losses.txt", "w") as file:
        file.write("\n".join(losses[2:]) + "\n")
    for entry in os.listdir(folder):
        if re.fullmatch("(global_step|iter_0*)4", entry) or entry.startswith("latest"):
            path = f"{folder}/{entry}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    print(name, losses)


def main(megatron, output, *names):
    prepare(os.path.abspath(megatron))
    os.chdir(output)
    for i, name in enumerate(names or RUNS):
        train(*name.split("=")[:1], 29600 + i, *name.split("=")[1:])


if __name__ == "__main__":
    main(*sys.argv[1:])
