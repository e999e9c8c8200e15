#include "apps/convert/convert.h"

#include "apps/common/command_line.h"
#include "checkpoint/convert.h"

namespace bloomery {
namespace {

// What the options say with words of their own.
struct Words {
  enum class Qkv { as_said, heads, thirds };
  enum class Numbers { stored, fp32, bf16, fp16 };

  std::string input, output, adapter;
  std::int64_t max_shard_bytes = 5'000'000'000;
  Qkv qkv = Qkv::as_said;
  Numbers dtype = Numbers::stored;

  void apply(ConvertOptions& o) const {
    o.input = input;
    o.output = output;
    o.adapter = adapter;
    o.max_shard_bytes = static_cast<std::size_t>(max_shard_bytes);
    if (qkv != Qkv::as_said) {
      o.qkv = qkv == Qkv::heads ? QkvOrder::by_head : QkvOrder::thirds;
    }
    if (dtype != Numbers::stored) {
      o.dtype = dtype == Numbers::fp32   ? DType::fp32
                : dtype == Numbers::bf16 ? DType::bf16
                                         : DType::fp16;
    }
  }
};

void describe(OptionTable& t, Words& w, ConvertOptions& o) {
  t.section("what to convert");
  t.add("input", w.input,
        "A --save folder (its newest good checkpoint), one step-N, a Hugging Face folder with "
        "config.json and weights (safetensors or pytorch_model.bin, whole or sharded), or a "
        "checkpoint of Megatron or DeepSpeed; which it is is seen from its files.")
      .required();
  t.add("output", w.output, "The folder to make; it must not exist, or be empty.").required();
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
  t.add("merge-adapter", w.adapter,
        "A folder of PEFT's with a LoRA adapter, which is added to the weights.");
  t.add("max-shard-size", w.max_shard_bytes,
        "Bytes of weights per file; a larger Hugging Face model is written in shards with an "
        "index.",
        at_least(1));
  t.add("dtype", w.dtype, "Of the weights of a Hugging Face folder; stored: as they are.",
        {{"stored", Words::Numbers::stored},
         {"fp32", Words::Numbers::fp32},
         {"bf16", Words::Numbers::bf16},
         {"fp16", Words::Numbers::fp16},
         {"float32", Words::Numbers::fp32},
         {"bfloat16", Words::Numbers::bf16},
         {"float16", Words::Numbers::fp16}});
  t.add(
      "qkv-layout", w.qkv,
      "How --input, of Megatron or DeepSpeed, keeps fused queries, keys and values: heads, "
      "Megatron's, or thirds, Megatron-DeepSpeed's since December 2024. auto: as the arguments in "
      "the file say.",
      {{"auto", Words::Qkv::as_said},
       {"heads", Words::Qkv::heads},
       {"thirds", Words::Qkv::thirds}});
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
  Words said;
  OptionTable table;
  describe(table, said, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery convert --input DIR --output DIR --to hf|native|peft|megatron|deepspeed "
          "[OPTIONS]\n\n"
          "Numbers are rounded where --dtype asks for it or an adapter is merged. The tokenizer "
          "is the one that the model names; the options "
          "below give another.\n")) {
    return 0;
  }
  said.apply(options);
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
