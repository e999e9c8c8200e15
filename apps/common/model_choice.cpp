#include "apps/common/model_choice.h"

#include <algorithm>
#include <map>

#include "models/family.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

LoadOptions ModelChoice::options() const {
  LoadOptions options{.path = load,
                      .device = device.options(),
                      .quantized = quantized,
                      .tokenizer = tokenizer,
                      .adapter = adapter,
                      .merges_adapter = merges_adapter};
  TokenizerOptions& named = options.tokenizer;
  if (named.type.empty() && named.path.empty() && !named.vocab_file.empty()) {
    named.type = "GPT2BPETokenizer";  // as in Megatron's programs for GPT, when none is named
  }
  if (dtype != "auto") {
    options.dtype = training_dtype_of_name(dtype, "--dtype");
  }
  return options;
}

void ModelChoice::require_agreement(const LoadedModel& model) const {
  const ModelOptions& o = model.options();
  check(find_family(o.family).head == FamilyHead::next_token, "the model of ",
        model.folder().string(), " is a ", o.family, ", which does not continue text");
  require_sizes(model);
}

void ModelChoice::require_sizes(const LoadedModel& model) const {
  const ModelOptions& o = model.options();
  const auto require = [&](const char* flag, const std::optional<std::int64_t>& given,
                           std::int64_t value) {
    check(!given || *given == value, flag, " ", given.value_or(0), ", but the model of ",
          model.folder().string(), " has ", value, "; leave the flag out");
  };
  require("--num-layers", num_layers, o.num_layers);
  require("--hidden-size", hidden_size, o.hidden_size);
  require("--num-attention-heads", num_heads, o.attention.num_heads);
  require("--max-position-embeddings", max_positions, o.positions.max_length);
}

void describe(OptionTable& t, ModelChoice& o) {
  t.section("model");
  t.add("load", o.load,
        "A --save folder (its newest good checkpoint), one step-N, or a Hugging Face folder.")
      .required();
  t.add("adapter", o.adapter, "A folder of PEFT's with a LoRA adapter for the model.");
  t.add("merge-adapter", o.merges_adapter,
        "An adapter is added to the weights, instead of being computed beside them.");
  t.add_choice("dtype", o.dtype,
               "What to compute in; auto is fp32 on the CPU and, on a GPU, what the model was "
               "trained or stored in.",
               {"auto", "fp32", "bf16", "fp16"})
      .shorthand("fp16", "fp16")
      .shorthand("bf16", "bf16");
  t.add("quantize", o.quantized,
        "The weights of linear layers in blocks are held in 8 bits (int8 or fp8, a scale for each "
        "row) or 4 (nf4, a scale for 64 numbers).",
        {{"none", QuantizedFormat::none},
         {"int8", QuantizedFormat::int8},
         {"fp8", QuantizedFormat::fp8},
         {"nf4", QuantizedFormat::nf4}})
      .shorthand("load-in-8bit", "int8")
      .shorthand("load-in-4bit", "nf4");
  describe(t, o.device);
  const char* same = "The model knows it; where given, it must be the same.";
  t.add("num-layers", o.num_layers, same);
  t.add("hidden-size", o.hidden_size, same);
  t.add("num-attention-heads", o.num_heads, same);
  t.add("max-position-embeddings", o.max_positions, same);
  describe(t, o.tokenizer);
}

std::int64_t text_capacity(const LoadedModel& model, const std::optional<std::int64_t>& asked) {
  const std::int64_t wanted =
      asked.value_or(std::min(model.options().positions.max_length, kUsualLength));
  const auto most = max_length(model.options());
  check(!most || wanted <= *most, "--max-length ", wanted, ", but the model has positions for ",
        most.value_or(0));
  return wanted;
}

void ignore_training_flags(OptionTable& table, const Arguments& arguments) {
  PretrainOptions training;
  OptionTable known;
  describe(known, training);
  std::map<std::string, const OptionRow*> rows;
  for (const OptionRow& row : known.rows()) {
    for (const OptionRow::Spelling& flag : row.flags) {
      rows.emplace(flag.text, &row);
    }
  }
  for (const OptionRow& row : table.rows()) {
    for (const OptionRow::Spelling& flag : row.flags) {
      rows.erase(flag.text);
    }
  }
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) {
      continue;
    }
    const std::string name = canonical_option(argument.substr(2, argument.find('=') - 2));
    const auto found = rows.find(name);
    if (found == rows.end()) {
      continue;
    }
    if (found->second->refused_because.empty()) {
      table.ignore(name, "the checkpoint has the model, and nothing is trained here");
    } else {
      table.refuse(name, found->second->harmless_words, found->second->refused_because);
    }
    rows.erase(found);
  }
}

}  // namespace bloomery
