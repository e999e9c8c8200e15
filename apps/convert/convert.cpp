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
        "Model to convert: a checkpoint folder of a run (its newest good checkpoint), one "
        "checkpoint, a Hugging Face folder (config.json and weights), or a Megatron or DeepSpeed "
        "checkpoint. The form is recognized by its files.")
      .required();
  t.add("output", w.output, "New or empty folder for the result.").required();
  t.add("to", o.to,
        "Form of the result. A trained adapter is merged, except for peft (the adapter only) and "
        "native.",
        {{"hf", ModelForm::hf},
         {"native", ModelForm::native},
         {"peft", ModelForm::peft},
         {"megatron", ModelForm::megatron},
         {"deepspeed", ModelForm::deepspeed}})
      .required();
  t.add("merge-adapter", w.adapter, "Folder of a PEFT LoRA adapter to merge into the weights.");
  t.add("max-shard-size", w.max_shard_bytes,
        "Maximum bytes of weights per file; larger Hugging Face models are sharded with an index.",
        at_least(1));
  t.add("dtype", w.dtype, "Data type of the weights of a Hugging Face folder; stored: unchanged.",
        {{"stored", Words::Numbers::stored},
         {"fp32", Words::Numbers::fp32},
         {"bf16", Words::Numbers::bf16},
         {"fp16", Words::Numbers::fp16},
         {"float32", Words::Numbers::fp32},
         {"bfloat16", Words::Numbers::bf16},
         {"float16", Words::Numbers::fp16}});
  t.add("qkv-layout", w.qkv,
        "Layout of fused queries, keys and values in a Megatron or DeepSpeed --input: heads "
        "(Megatron) or thirds (Megatron-DeepSpeed since December 2024). auto: from the arguments "
        "in the file.",
        {{"auto", Words::Qkv::as_said},
         {"heads", Words::Qkv::heads},
         {"thirds", Words::Qkv::thirds}});
  t.add("tensor", o.layout.tensor, "Tensor-parallel ranks of a Megatron or DeepSpeed result.",
        between(1, 1024))
      .alias("tensor-model-parallel-size");
  t.add("pipeline", o.layout.pipeline, "Pipeline stages of a Megatron or DeepSpeed result.",
        between(1, 1024))
      .alias("pipeline-model-parallel-size");
  t.add("expert", o.layout.expert, "Expert-parallel ranks of a DeepSpeed result.", between(1, 1024))
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
          "Weights keep their bits, unless --dtype rounds them or an adapter is merged. The "
          "tokenizer is the model's own, unless an option names another.\n\n"
          "example:\n  bloomery convert --input run/tuned --output run/hf --to hf\n")) {
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
