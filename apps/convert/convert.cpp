#include "apps/convert/convert.h"

#include "apps/common/command_line.h"
#include "checkpoint/convert.h"

namespace bloomery {
namespace {

void describe(OptionTable& t, std::string& input, std::string& output, std::string& adapter,
              ConvertOptions& o, std::int64_t& max_shard_bytes) {
  t.section("what to convert");
  t.add("input", input,
        "A --save folder (its newest good checkpoint), one step-N, a Hugging Face folder with "
        "config.json and weights (safetensors or pytorch_model.bin, whole or sharded), or a "
        "checkpoint of Megatron or DeepSpeed; which it is is seen from its files.")
      .required();
  t.add("output", output, "The folder to make; it must not exist, or be empty.").required();
  t.add("to", o.to,
        "What to make. An adapter that was trained here is merged, but for peft, which is the "
        "adapter "
        "alone, and native.",
        {{"hf", ModelForm::hf},
         {"native", ModelForm::native},
         {"peft", ModelForm::peft},
         {"megatron", ModelForm::megatron},
         {"deepspeed", ModelForm::deepspeed}})
      .required();
  t.add("merge-adapter", adapter,
        "A folder of PEFT's with a LoRA adapter, which is added to the weights.");
  t.add("max-shard-size", max_shard_bytes,
        "Bytes of weights per file; a larger Hugging Face model is written in shards with an "
        "index.",
        at_least(1));
  t.add("tensor", o.layout.tensor, "Tensor ranks that a Megatron or DeepSpeed checkpoint is for.",
        between(1, 1024))
      .alias("tensor-model-parallel-size");
  t.add("pipeline", o.layout.pipeline, "Pipeline stages likewise.", between(1, 1024))
      .alias("pipeline-model-parallel-size");
  t.add("expert", o.layout.expert, "Expert ranks that a DeepSpeed checkpoint is for.",
        between(1, 1024))
      .alias("moe-expert-parallel-size");
  describe(t, o.tokenizer);
}

}  // namespace

int convert(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options;
  std::string input, output, adapter;
  auto max_shard_bytes = static_cast<std::int64_t>(options.max_shard_bytes);
  OptionTable table;
  describe(table, input, output, adapter, options, max_shard_bytes);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery convert --input DIR --output DIR --to hf|native|peft|megatron|deepspeed "
          "[OPTIONS]\n\n"
          "Numbers are never rounded, but for those that an adapter is merged into. The tokenizer "
          "is the one that the model names; the options "
          "below give another.\n")) {
    return 0;
  }
  options.input = input;
  options.output = output;
  options.adapter = adapter;
  options.max_shard_bytes = static_cast<std::size_t>(max_shard_bytes);
  Device device;
  Stream stream(device);
  const Log log;
  const Conversion done = convert_model(stream, options, log);
  if (!done.has_tokenizer) {
    log.warning("no tokenizer is known for this model, so none was written; --tokenizer names one");
  }
  out << done.written.string() << ": " << done.num_parameters << " parameters of "
      << done.source.string() << '\n';
  return 0;
}

}  // namespace bloomery
