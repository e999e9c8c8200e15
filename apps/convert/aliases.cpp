#include "apps/convert/aliases.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "apps/common/command_line.h"
#include "base/error.h"
#include "checkpoint/convert.h"

namespace bloomery {
namespace {

constexpr const char* kNoMeaning = "it does not change the result";

int run(const ConvertOptions& options, std::ostream& out) {
  Device device;
  Stream stream(device);
  const Conversion done = convert_model(stream, options, Log());
  out << done.written.string() << ": " << done.num_parameters << " parameters of "
      << done.source.string() << '\n';
  return 0;
}

// Their tools read the flags of the whole model, which the checkpoint knows: those that the table
// does not have are left out, with what belongs to them.
Arguments known_flags(const OptionTable& table, const Arguments& arguments) {
  Arguments known;
  bool keep = true;
  for (const std::string& word : arguments) {
    if (word.starts_with("--")) {
      const std::string name = word.substr(2, word.find('=') - 2);
      keep =
          name.starts_with("help") || std::ranges::any_of(table.rows(), [&](const OptionRow& row) {
            return std::ranges::find(row.flags, name, &OptionRow::Spelling::text) !=
                   row.flags.end();
          });
    }
    if (keep) {
      known.push_back(word);
    }
  }
  return known;
}

// Of zero_to_fp32, the only tool of theirs with letters for flags.
Arguments with_long_names(Arguments arguments) {
  std::ranges::replace(arguments, std::string("-t"), std::string("--tag"));
  std::ranges::replace(arguments, std::string("-d"), std::string("--debug"));
  return arguments;
}

// "300MB" as 300,000,000.
std::size_t decimal_bytes(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  const bool known = unit.empty() || found != std::end(kUnits);
  check(error == std::errc() && known && number >= 1 && number < 1e15, "--max_shard_size ", text,
        " is no size; give a number of bytes or one like 300MB or 5GB");
  return static_cast<std::size_t>(number * (unit.empty() ? 1 : found->second));
}

// The two converters of DeepSpeed's checkpoints, which differ in what they make.
int from_deepspeed(const Arguments& arguments, std::ostream& out, ModelForm to,
                   const std::string& name) {
  ConvertOptions options{.to = to};
  std::string input, output;
  bool release = false;
  OptionTable t;
  t.section("what to convert");
  t.add("input_folder", input, "Checkpoint, in DeepSpeed's or any other form.").required();
  t.add("output_folder", output, "New or empty folder for the result.").required();
  t.add("target_tp", options.layout.tensor, "Tensor-parallel ranks of the result.",
        between(1, 1024));
  t.add("target_pp", options.layout.pipeline, "Pipeline stages of the result.", between(1, 1024));
  t.add("for_release", release, "Leave out the optimizer and the progress of the run.");
  if (!read_options(t, arguments, out,
                    "usage: bloomery " + name +
                        " --input_folder DIR --output_folder DIR "
                        "[OPTIONS]\n\nexample:\n  bloomery " +
                        name + " --input_folder checkpoint --output_folder converted\n")) {
    return 0;
  }
  options.input = input;
  options.output = output;
  options.weights_only = release;
  return run(options, out);
}

}  // namespace

int merge_mp_partitions(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options{.to = ModelForm::megatron};
  std::string input, output, type = "GPT";
  OptionTable t;
  t.section("what to merge");
  t.add("load", input, "Checkpoint to merge.").required();
  t.add("save", output, "New or empty folder for the result.").required();
  t.add_choice("model-type", type, "Type of the model.", {"GPT", "BERT", "T5"});
  t.add("target-tensor-model-parallel-size", options.layout.tensor,
        "Tensor-parallel ranks of the result.", between(1, 1024));
  t.add("target-pipeline-model-parallel-size", options.layout.pipeline,
        "Pipeline stages of the result.", between(1, 1024));
  if (!read_options(t, known_flags(t, arguments), out,
                    "usage: bloomery merge_mp_partitions --load DIR --save DIR [OPTIONS]\n\n"
                    "Flags of the model are not needed: the checkpoint has them.\n\n"
                    "example:\n  bloomery merge_mp_partitions --load checkpoint --save merged\n")) {
    return 0;
  }
  options.input = input;
  options.output = output;
  return run(options, out);
}

int checkpoint_util(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options{.to = ModelForm::megatron};
  std::string input, output, type = "GPT";
  OptionTable t;
  t.section("what to convert");
  t.add("load-dir", input, "Checkpoint to convert.").required();
  t.add("save-dir", output, "New or empty folder for the result.").required();
  t.add_choice("model-type", type, "Type of the model.", {"GPT", "BERT", "T5"});
  std::optional<int> tensor, pipeline;
  t.add("target-tensor-parallel-size", tensor,
        "Tensor-parallel ranks of the result; none: the source's.", between(1, 1024));
  t.add("target-pipeline-parallel-size", pipeline,
        "Pipeline stages of the result; none: the source's.", between(1, 1024));
  for (const char* name : {"loader", "saver", "max-queue-size", "no-checking", "true-vocab-size",
                           "vocab-file", "megatron-path"}) {
    t.ignore(name, kNoMeaning);
  }
  if (!read_options(t, arguments, out,
                    "usage: bloomery checkpoint_util --load-dir DIR --save-dir DIR "
                    "[OPTIONS]\n\nexample:\n  bloomery checkpoint_util --load-dir checkpoint "
                    "--save-dir resharded --target-tensor-parallel-size 2\n")) {
    return 0;
  }
  options.layout = {.tensor = tensor.value_or(0), .pipeline = pipeline.value_or(0)};
  options.input = input;
  options.output = output;
  return run(options, out);
}

int deepspeed_to_megatron(const Arguments& arguments, std::ostream& out) {
  return from_deepspeed(arguments, out, ModelForm::megatron, "deepspeed_to_megatron");
}

int deepspeed_to_transformers(const Arguments& arguments, std::ostream& out) {
  return from_deepspeed(arguments, out, ModelForm::hf, "deepspeed_to_transformers");
}

int zero_to_fp32(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options{.to = ModelForm::exact_weights};
  std::string tag, max_shard = "5GB";
  std::vector<std::string> places;
  OptionTable t;
  t.section("what to convert");
  t.add("folders", places, "Folder of the checkpoints, then the folder of the output.")
      .positional();
  t.add("tag", tag, "Checkpoint to use; none: the one that `latest` names.");
  t.add("max_shard_size", max_shard,
        "Maximum bytes of weights per file, with or without a unit (KB, MB, GB, TB); larger models "
        "are sharded with an index.");
  t.add("safe_serialization", options.safetensors, "Write safetensors.");
  for (const char* name : {"exclude_frozen_parameters", "debug"}) {
    t.ignore(name, kNoMeaning);
  }
  if (!read_options(t, with_long_names(arguments), out,
                    "usage: bloomery zero_to_fp32 CHECKPOINTS OUTPUT [OPTIONS]\n\n"
                    "Writes OUTPUT/pytorch_model.bin, or model.safetensors: the optimizer's fp32 "
                    "weights, under Megatron's names.\n\n"
                    "example:\n  bloomery zero_to_fp32 checkpoints output\n")) {
    return 0;
  }
  check(places.size() == 2,
        "zero_to_fp32 needs two folders: that of the checkpoints and that of "
        "the output");
  options.input =
      tag.empty() ? std::filesystem::path(places[0]) : std::filesystem::path(places[0]) / tag;
  options.output = places[1];
  options.max_shard_bytes = decimal_bytes(max_shard);
  return run(options, out);
}

int ds_to_universal(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options{.to = ModelForm::universal};
  std::string input, output;
  OptionTable t;
  t.section("what to convert");
  t.add("input_folder", input, "Checkpoint with its optimizer, in any form.").required();
  t.add("output_folder", output, "New or empty folder for the result.").required();
  for (const char* name : {"num_extract_workers", "num_merge_workers", "keep_temp_folder",
                           "no_strict", "strict", "inject_missing_state"}) {
    t.ignore(name, kNoMeaning);
  }
  if (!read_options(t, arguments, out,
                    "usage: bloomery ds_to_universal --input_folder DIR --output_folder DIR\n\n"
                    "example:\n  bloomery ds_to_universal --input_folder checkpoint "
                    "--output_folder universal\n")) {
    return 0;
  }
  options.input = input;
  options.output = output;
  return run(options, out);
}

int hf2megads_weight_converter(const Arguments& arguments, std::ostream& out) {
  ConvertOptions options{.to = ModelForm::deepspeed};
  std::string folder, load, save;
  bool to_hf = false;
  OptionTable t;
  t.section("what to convert");
  t.add("hf-ckpt-dir", folder, "Hugging Face model; with --to-hf-ckpt: folder for the result.");
  t.add("load", load, "With --to-hf-ckpt: checkpoint to convert.");
  t.add("save", save, "New or empty folder for the result.");
  t.add("to-hf-ckpt", to_hf, "Convert a checkpoint to a Hugging Face folder.");
  t.add("tensor-model-parallel-size", options.layout.tensor, "Tensor-parallel ranks of the result.",
        between(1, 1024));
  t.add("pipeline-model-parallel-size", options.layout.pipeline, "Pipeline stages of the result.",
        between(1, 1024));
  if (!read_options(t, known_flags(t, arguments), out,
                    "usage: bloomery hf2megads_weight_converter --hf-ckpt-dir DIR --save DIR "
                    "[OPTIONS]\n       bloomery hf2megads_weight_converter --to-hf-ckpt --load DIR "
                    "--save DIR\n\nFlags of the model are not needed: its files have them.\n\n"
                    "example:\n  bloomery hf2megads_weight_converter --hf-ckpt-dir llama --save "
                    "converted\n")) {
    return 0;
  }
  options.to = to_hf ? ModelForm::hf : ModelForm::deepspeed;
  options.input = to_hf ? load : folder;
  options.output = save.empty() && to_hf ? folder : save;
  check(!options.input.empty() && !options.output.empty(),
        to_hf ? "--to-hf-ckpt needs --load and --save" : "give --hf-ckpt-dir and --save");
  return run(options, out);
}

}  // namespace bloomery
