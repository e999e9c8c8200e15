// The options of Megatron-DeepSpeed that have no effect here, because leaving them out cannot
// change results, and those whose features do not exist, which are refused by name.
#include <algorithm>
#include <array>
#include <string_view>

#include "config/option_table.h"
#include "train/plan/plan.h"

namespace bloomery {
namespace {

constexpr const char* kAlwaysScattered =
    "gradients are always contiguous, and ZeRO always reduce-scatters them";
constexpr const char* kOneBucketSize =
    "weights are gathered in the buckets of --zero-reduce-bucket-size";

// Names separated by spaces, so that a group reads as one.
struct WithoutEffect {
  const char* names;
  const char* because;
};

constexpr std::array kWithoutEffect = {
    WithoutEffect{"disable-mem-efficient-ln no-persist-layer-norm no-masked-softmax-fusion "
                  "no-bias-dropout-fusion no-gradient-accumulation-fusion transformer-impl "
                  "cpu-torch-adam ds-fused-adam no-rope-fusion use-mcore-models",
                  "it chooses between kernels with the same result"},
    WithoutEffect{"use-flash-attn use-flash-attn-v1 use-flash-attn-v2 use-flash-attn-triton "
                  "use-flash-attn-builder",
                  "attention is always fused and never stores its probabilities"},
    WithoutEffect{"group-query-attention", "--num-query-groups gives the number of groups"},
    WithoutEffect{"no-query-key-layer-scaling attention-softmax-in-fp32",
                  "the attention softmax is always computed in fp32"},
    WithoutEffect{"accumulate-allreduce-grads-in-fp32",
                  "gradients are accumulated and reduced in fp32, unless --grad-dtype or "
                  "--grad-reduce-dtype is given"},
    WithoutEffect{"embedding-weights-in-fp32", "embedding gradients are always summed in fp32"},
    WithoutEffect{"create-moe-param-group",
                  "the optimizer state of experts is always sharded over the ranks that hold them"},
    WithoutEffect{"use-tutel",
                  "experts always run as grouped matrix products, with the same results"},
    WithoutEffect{"enable-expert-tensor-parallelism",
                  "experts are always tensor-parallel, with the same results"},
    WithoutEffect{"no-pipeline-parallel overlap-p2p-communication use-ring-exchange-p2p "
                  "no-scatter-gather-tensors-in-pipeline standalone-embedding-stage",
                  "it tunes Megatron's pipeline communication, not results"},
    WithoutEffect{"no-async-tensor-model-parallel-allreduce",
                  "it tunes Megatron's tensor-parallel communication, not results"},
    WithoutEffect{"force-ds-sequence-parallel",
                  "--ds-sequence-parallel-size alone turns sequence parallelism on"},
    WithoutEffect{"DDP-impl "
                  "no-contiguous-buffers-in-local-ddp local-rank lazy-mpu-init deepspeed-mpi",
                  "ranks connect without it"},
    WithoutEffect{"data-parallel-random-init use-cpu-initialization no-initialization",
                  "initial weights depend on the seed and the name of a weight, not on the layout"},
    WithoutEffect{"deepspeed-activation-checkpointing contigious-checkpointing "
                  "synchronize-each-layer profile-backward",
                  "--checkpoint-activations or --recompute-granularity turns recomputation on"},
    WithoutEffect{"zero-reduce-scatter zero-contigious-gradients", kAlwaysScattered},
    WithoutEffect{"zero-allgather-bucket-size", kOneBucketSize},
    WithoutEffect{"use-pin-memory scattered-embeddings split-transformers "
                  "memory-centric-tiled-linear tile-factor empty-unused-memory-level",
                  "it tunes Megatron's memory, not results"},
    WithoutEffect{
        "exit-signal-handler adlr-autoresume adlr-autoresume-interval",
        "SIGTERM, SIGUSR1, SIGINT and (without nohup) SIGHUP always save and exit with code 75"},
    WithoutEffect{"no-load-lr-state kd-alpha-ce", "Megatron-DeepSpeed ignores it too"},
    WithoutEffect{"universal-checkpoint", "every checkpoint loads under every layout"},
    WithoutEffect{"return-data-index repeated-dataloader",
                  "samples are always indexed for the whole run"},
    WithoutEffect{"trust-remote-code", "tokenizers are never code"},
    WithoutEffect{"tensorboard-queue-size no-barrier-with-level-1-timing profile-ranks",
                  "it tunes Megatron's logging"},
    WithoutEffect{"wandb-project wandb-exp-name wandb-save-dir",
                  "nothing is sent over the network; `wandb sync` takes the TensorBoard events of "
                  "--tensorboard-dir, and metrics.jsonl has the same numbers"},
    WithoutEffect{"inference-batch-times-seqlen-threshold max-tokens-to-oom",
                  "it applies to inference only"},
    WithoutEffect{"output-bert-embeddings bert-embedder-type", "it applies to BERT and T5 only"},
    WithoutEffect{"biencoder-projection-dim biencoder-shared-query-context-model bert-load "
                  "titles-data-path query-in-block-prob use-one-sent-docs "
                  "retriever-report-topk-accuracies retriever-score-scaling",
                  "it applies to retrievers only (pretrain_ict)"},
    WithoutEffect{"retriever-seq-length sample-rate",
                  "it applies to finetune --task RET-FINETUNE-NQ only"},
    WithoutEffect{"evidence-data-path embedding-path "
                  "indexer-batch-size indexer-log-interval ict-load",
                  "it applies to `retrieve` and `evaluate` only"},
    WithoutEffect{"ict-head-size block-data-path",
                  "Megatron no longer trains such a model; --biencoder-projection-dim replaces "
                  "--ict-head-size"},
    WithoutEffect{"retro-workdir retro-cyclic-train-iters retro-encoder-layers "
                  "retro-encoder-hidden-dropout retro-encoder-attention-dropout "
                  "retro-num-neighbors retro-num-retrieved-chunks retro-return-doc-ids",
                  "it applies to --retro-add-retriever only, which is refused"},
    WithoutEffect{"train-idx-path train-desc-path train-doc-idx-path train-sample-idx-path "
                  "train-shuffle-idx-path",
                  "index files are found by corpora, --split, --seed, --seq-length and "
                  "--train-data-exact-num-epochs, and are Megatron's byte for byte"},
    WithoutEffect{"num-classes img-h img-w num-channels patch-dim classes-fraction "
                  "data-per-class-fraction head-lr-mult vision-pretraining "
                  "vision-pretraining-type vision-backbone-type swin-backbone-type mask-type "
                  "mask-factor iter-per-epoch dino-local-img-size dino-local-crops-number "
                  "dino-head-hidden-size dino-bottleneck-size dino-freeze-last-layer "
                  "dino-norm-last-layer dino-warmup-teacher-temp dino-teacher-temp "
                  "dino-warmup-teacher-temp-epochs",
                  "it applies to vision models only"},
};

struct Refused {
  const char* names;
  const char* harmless;  // words that ask for nothing, separated by spaces
  const char* because;
};

constexpr std::array kRefused = {
    Refused{"num-experts-switch", "",
            "Megatron's own switch layers are not supported (Megatron-DeepSpeed has not run them "
            "since 2023); use --num-experts with --expert-interval 1 and --topk 1"},
    Refused{"fp16-lm-cross-entropy", "False",
            "the loss of fp16 logits is computed in fp32 here; logits are never kept whole, so "
            "that fp16 would save no memory"},
    Refused{"aml-data-download-path", "", "give the whole prefix in --data-path"},
    Refused{"onnx-safe", "False", "use `bloomery convert` to export models"},
    Refused{"ds-inference inference", "", "this command trains; use `bloomery generate` for text"},
    Refused{"use-dataset-only", "False",
            "this command trains; use `bloomery data samples` for samples"},
    Refused{"retro-add-retriever", "", "RETRO is not supported"},
    Refused{"batch-size", "", "use --micro-batch-size"},
    Refused{"warmup", "", "use --lr-warmup-fraction"},
    Refused{"model-parallel-size", "", "use --tensor-model-parallel-size"},
};

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool has_row(const OptionTable& table, std::string_view name) {
  return std::ranges::any_of(table.rows(), [&](const OptionRow& row) {
    return std::ranges::find(row.flags, name, &OptionRow::Spelling::text) != row.flags.end();
  });
}

}  // namespace

void describe_without_effect(OptionTable& table) {
  for (const WithoutEffect& group : kWithoutEffect) {
    for (const std::string& name : split_words(group.names)) {
      if (!has_row(table, name)) {  // some families alone have it
        table.ignore(name, group.because);
      }
    }
  }
}

void describe_samples(OptionTable& table, PretrainOptions& options) {
  if (find_family(options.model.family).decoder_begin == nullptr) {
    table.ignore("decoder-num-layers", "it applies to T5 only");
  }
  static constexpr std::string_view kBinaryHead = "bert-no-binary-head";
  if (!has_row(table, kBinaryHead)) {
    table.ignore(std::string(kBinaryHead), "it applies to BERT only");
  }
  if (const auto describe = sample_kind(options).describe) {
    describe(table, options.sentences);
  }
  for (const char* name : {"mask-prob", "short-seq-prob", "decoder-seq-length"}) {
    if (!has_row(table, name)) {
      table.ignore(name, "it means something to BERT and T5 alone");
    }
  }
}

void describe_refused(OptionTable& table) {
  for (const Refused& group : kRefused) {
    for (const std::string& name : split_words(group.names)) {
      table.refuse(name, split_words(group.harmless), group.because);
    }
  }
}

}  // namespace bloomery
