#include "apps/convert/convert.h"

#include "apps/common/command_line.h"
#include "checkpoint/convert.h"

namespace bloomery {
namespace {

void describe(OptionTable& t, std::string& input, std::string& output, ConvertOptions& o,
              std::int64_t& max_shard_bytes) {
  t.section("what to convert");
  t.add("input", input,
        "A --save folder (its newest good checkpoint), one step-N, or a Hugging Face folder with "
        "config.json and weights (safetensors or pytorch_model.bin, whole or sharded); which it is "
        "is seen from its files.")
      .required();
  t.add("output", output, "The folder to make; it must not exist, or be empty.").required();
  t.add("to", o.to, "What to make.", {{"hf", ModelForm::hf}, {"native", ModelForm::native}})
      .required();
  t.add("max-shard-size", max_shard_bytes,
        "Bytes of weights per file; a larger Hugging Face model is written in shards with an "
        "index.",
        at_least(1));
  describe(t, o.tokenizer);
}

}  // namespace

int convert(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options;
  std::string input, output;
  auto max_shard_bytes = static_cast<std::int64_t>(options.max_shard_bytes);
  OptionTable table;
  describe(table, input, output, options, max_shard_bytes);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery convert --input DIR --output DIR --to hf|native [OPTIONS]\n\n"
          "Numbers are never rounded. The tokenizer is the one that the model names; the options "
          "below give another.\n")) {
    return 0;
  }
  options.input = input;
  options.output = output;
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
