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

void require_text_model(const LoadedModel& model) {
  const ModelOptions& o = model.options();
  check(find_family(o.family).head == FamilyHead::next_token, "the model of ",
        model.folder().string(), " is a ", o.family, ", which does not generate text");
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
        "Model: a checkpoint folder of a run (its newest good checkpoint), one checkpoint, or a "
        "Hugging Face folder.")
      .required();
  t.add("adapter", o.adapter, "Folder of a PEFT LoRA adapter for the model.");
  t.add("merge-adapter", o.merges_adapter, "Merge the adapter into the weights before running.");
  t.add_choice("dtype", o.dtype,
               "Data type of the computation; auto: fp32 on a CPU, the model's own type on a GPU.",
               {"auto", "fp32", "bf16", "fp16"})
      .shorthand("fp16", "fp16")
      .shorthand("bf16", "bf16");
  t.add("quantize", o.quantized,
        "Weight-only quantization for inference: int8 or fp8 with a scale per row, or nf4 with a "
        "scale per 64 numbers.",
        {{"none", QuantizedFormat::none},
         {"int8", QuantizedFormat::int8},
         {"fp8", QuantizedFormat::fp8},
         {"nf4", QuantizedFormat::nf4}})
      .shorthand("load-in-8bit", "int8")
      .shorthand("load-in-4bit", "nf4");
  describe(t, o.device);
  const char* same = "Must match the model; for scripts of Megatron.";
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
  check(!most || wanted <= *most, "--max-length ", wanted, ", but the model's positions end at ",
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
    if (name == "ds-inference" || name == "inference") {
      table.ignore(name, "this command runs the model and never trains it");
    } else if (found->second->refused_because.empty()) {
      table.ignore(name, "the checkpoint sets the model, and this command does not train");
    } else {
      table.refuse(name, found->second->harmless_words, found->second->refused_because);
    }
    rows.erase(found);
  }
}

}  // namespace bloomery
