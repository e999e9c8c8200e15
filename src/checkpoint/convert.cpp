
#include "checkpoint/convert.h"

#include "base/folder.h"
#include "checkpoint/folder.h"
#include "checkpoint/hf/adapter.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/hf/hf_origin.h"
#include "checkpoint/megatron/foreign_source.h"
#include "checkpoint/save.h"
#include "checkpoint/streamed_tensors.h"
#include "checkpoint/tokenizer_files.h"
#include "config/json_fields.h"
#include "nn/adapter.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// The folder that OUTPUT means: absent or empty.
fs::path output_folder(const fs::path& output) {
  // A path may end with a slash; its last name then is empty.
  fs::path folder = fs::absolute(output).lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();
  const bool exists = fs::exists(fs::symlink_status(folder));
  check(!exists || (fs::is_directory(folder) && fs::is_empty(folder)), output.string(),
        " exists already; give --output a name that is not in use");
  return exists ? fs::canonical(folder) : folder;  // what a symbolic link means
}

std::optional<TokenizerOptions> chosen_tokenizer(const ConvertOptions& options,
                                                 const ModelSource& source) {
  return names_tokenizer(options.tokenizer) ? std::optional(options.tokenizer)
                                            : source.record().tokenizer;
}

// What `read` makes of the model's tokenizer.
template <class Read>
auto read_tokenizer(const TokenizerOptions& options, const Read& read) {
  try {
    return read(options);
  } catch (const Error& error) {
    throw Error(concat("the model's tokenizer cannot be read: ", error.what(),
                       "; --tokenizer names another place"));
  }
}

void write_native(const StagedFolder& output, const ModelSource& source,
                  const std::optional<TokenizerOptions>& tokenizer) {
  Snapshot snapshot;
  if (source.state() != nullptr) {
    snapshot.state = *source.state();
  }
  ModelRecord record = source.record();
  record.tokenizer = tokenizer;
  if (tokenizer) {
    snapshot.files = read_tokenizer(
        *tokenizer, [](const TokenizerOptions& files) { return read_tokenizer_files(files); });
    set_carried_tokenizer(snapshot.state, *tokenizer);
  }
  set_model_record(snapshot.state, record);
  if (!(source.token_ids() == HfTokenIds())) {
    set_token_ids(snapshot.state, source.token_ids());
  }
  set_hf_origin(snapshot.state, source.hf_origin());
  StreamedTensors streamed(source);
  for (const auto* tensors : {&source.weights(), &source.others()}) {
    for (const auto& [name, entry] : *tensors) {
      snapshot.pieces.push_back(
          {.tensor = name,
           .dtype = entry.dtype,
           .box = Box::whole(entry.shape),
           .owner = nullptr,
           .read = [&streamed, name](std::uint64_t offset, std::span<std::byte> to) {
             streamed.read(name, offset, to);
           }});
    }
  }
  const SaveGroup alone = single_rank_group();
  const SaveOptions once;
  const SaveOutcome outcome = SaveTask(output.path(), alone, once, snapshot).run();
  if (!outcome.committed) {
    throw std::runtime_error(outcome.message);
  }
}

void write_folder(const StagedFolder& output, const ModelSource& source,
                  const std::optional<TokenizerOptions>& tokenizer, const ConvertOptions& options) {
  HfExportOptions extra{.tokens = source.token_ids(),
                        .origin = source.hf_origin(),
                        .max_shard_bytes = options.max_shard_bytes,
                        .dtype = options.dtype};
  if (tokenizer) {
    extra.tokenizer = read_tokenizer(*tokenizer, find_hf_tokenizer);
  }
  write_hf(source, output.path(), extra);
}

// The options of the run that the model comes from.
JsonFields run_options(const ModelSource& source) {
  return JsonFields(source.state() != nullptr ? source.state()->options : "{}",
                    source.folder().string());
}

ForeignLayout completed_layout(ForeignLayout layout, const ModelSource& source) {
  const JsonFields options = run_options(source);
  const auto as_source = [&](int& ranks, const char* name) {
    if (ranks == 0) {
      ranks = static_cast<int>(options.find<std::int64_t>(name).value_or(1));
    }
  };
  as_source(layout.tensor, "tensor-model-parallel-size");
  as_source(layout.pipeline, "pipeline-model-parallel-size");
  return layout;
}

void write_foreign(const StagedFolder& output, const ModelSource& source,
                   const ConvertOptions& options) {
  const ForeignLayout layout = completed_layout(options.layout, source);
  switch (options.to) {
    case ModelForm::megatron:
      return write_megatron(source, output.path(), layout, options.weights_only);
    case ModelForm::deepspeed:
      return write_deepspeed(source, output.path(), layout);
    case ModelForm::universal:
      return write_universal(source, output.path(), layout);
    default:
      return write_exact_weights(
          source, output.path(),
          {.safetensors = options.safetensors, .max_shard_bytes = options.max_shard_bytes});
  }
}

// What a run was tuned from.
std::string base_name(const ModelSource& source) {
  return run_options(source).find<std::string>("load").value_or("");
}

}  // namespace

Conversion convert_model(Stream& stream, const ConvertOptions& options, const Log& log) {
  check(!options.dtype || options.to == ModelForm::hf,
        "--dtype applies to --to hf only; other forms keep the weights of the run");
  auto source = options.qkv
                    ? open_foreign_model(stream, options.input, {.qkv = options.qkv, .log = log})
                    : open_model(stream, options.input, log);
  if (!options.adapter.empty()) {
    source = merged(with_adapter(std::move(source), Adapter(stream, options.adapter)));
  } else if (source->record().model.adapter.enabled && options.to != ModelForm::native &&
             options.to != ModelForm::peft) {
    source = merged(std::move(source));
  }
  const auto tokenizer = chosen_tokenizer(options, *source);
  StagedFolder output(output_folder(options.output));
  Conversion done{.source = source->folder(),
                  .written = output.final_path(),
                  .has_tokenizer = tokenizer.has_value()};
  for (const auto& [name, entry] : source->weights()) {
    const bool counts = options.to != ModelForm::peft || is_adapter_parameter(name);
    done.num_parameters += counts ? entry.shape.numel() : 0;
  }
  if (options.to == ModelForm::native) {
    write_native(output, *source, tokenizer);
    done.written /= step_name(source->state() != nullptr ? source->state()->step : 0);
  } else if (options.to == ModelForm::peft) {
    write_adapter(*source, base_name(*source), output.path());
  } else if (options.to == ModelForm::hf) {
    write_folder(output, *source, tokenizer, options);
  } else {
    write_foreign(output, *source, options);
  }
  output.commit();
  return done;
}

}  // namespace bloomery
