#include "config/other_names.h"

#include <algorithm>

#include "base/error.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

// Names of Hugging Face's Trainer, TRL, nanoGPT and PyTorch's scripts, and ours for them. Of
// several lines for a name the first counts whose options the command has.
struct OtherName {
  std::string_view theirs;
  std::string_view ours, second = {};
};
constexpr OtherName kOtherNames[] = {
    {"batch-size", "micro-batch-size"},
    {"beta1", "adam-beta1"},
    {"beta2", "adam-beta2"},
    {"block-size", "seq-length"},
    {"context-length", "seq-length"},
    {"dataset", "data-path"},
    {"dropout", "hidden-dropout", "attention-dropout"},
    {"eval-steps", "eval-interval"},
    {"ffn-dim", "ffn-hidden-size"},
    {"grad-clip", "clip-grad"},
    {"gradient-clipping", "clip-grad"},
    {"gradient-checkpointing", "checkpoint-activations"},
    {"init-from", "load"},
    {"input-file", "input"},
    {"intermediate-size", "ffn-hidden-size"},
    {"learning-rate", "lr"},
    {"load-dir", "load"},
    {"logging-steps", "log-interval"},
    {"lr-scheduler-type", "lr-decay-style"},
    {"max-grad-norm", "clip-grad"},
    {"max-iters", "train-iters"},
    {"max-length", "seq-length"},
    {"max-length", "out-seq-length"},
    {"max-new-tokens", "out-seq-length"},
    {"max-seq-len", "seq-length"},
    {"max-seq-length", "seq-length"},
    {"max-steps", "train-iters"},
    {"max-tokens", "out-seq-length"},
    {"min-learning-rate", "min-lr"},
    {"model", "load"},
    {"model-max-length", "seq-length"},
    {"model-name", "load"},
    {"model-name-or-path", "load"},
    {"model-path", "load"},
    {"n-ctx", "seq-length"},
    {"n-embd", "hidden-size"},
    {"n-head", "num-attention-heads"},
    {"n-heads", "num-attention-heads"},
    {"n-kv-head", "num-key-value-heads"},
    {"n-kv-heads", "num-key-value-heads"},
    {"n-layer", "num-layers"},
    {"n-layers", "num-layers"},
    {"n-positions", "max-position-embeddings"},
    {"num-decoder-layers", "decoder-num-layers"},
    {"num-epochs", "epochs"},
    {"num-heads", "num-attention-heads"},
    {"num-hidden-layers", "num-layers"},
    {"num-return-sequences", "num-samples"},
    {"num-train-epochs", "epochs"},
    {"out-dir", "save"},
    {"output-dir", "save"},
    {"output-dir", "output"},
    {"per-device-train-batch-size", "micro-batch-size"},
    {"resume", "load"},
    {"resume-from-checkpoint", "load"},
    {"save-steps", "save-interval"},
    {"save-total-limit", "keep-last"},
    {"total-batch-size", "global-batch-size"},
    {"train-batch-size", "global-batch-size"},
    {"train-data", "data-path"},
    {"train-file", "data-path"},
    {"train-steps", "train-iters"},
    {"vocab", "vocab-file"},
    {"warmup-iters", "lr-warmup-iters"},
    {"warmup-ratio", "lr-warmup-fraction"},
    {"warmup-steps", "lr-warmup-iters"},
};

std::string name_here(std::string_view name, const std::vector<std::string>& known,
                      std::string_view prefix) {
  const auto has = [&](std::string_view option) {
    return option.empty() || std::ranges::find(known, option) != known.end();
  };
  for (const OtherName& each : kOtherNames) {
    if (each.theirs == name && has(each.ours) && has(each.second)) {
      return each.second.empty() ? concat(prefix, each.ours)
                                 : concat(prefix, each.ours, " and ", prefix, each.second);
    }
  }
  return "";
}

}  // namespace

std::string advice_for_unknown(std::string_view name, const std::vector<std::string>& known,
                               std::string_view prefix) {
  const std::string canonical = canonical_option(name);
  if (const std::string here = name_here(canonical, known, prefix); !here.empty()) {
    return concat("; here it is ", here);
  }
  const std::string guess = nearest(canonical, known);
  return guess.empty() ? "" : concat("; did you mean ", prefix, guess, "?");
}

}  // namespace bloomery
