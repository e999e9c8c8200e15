#include "checkpoint/convert.h"

#include <unistd.h>

#include "checkpoint/disk.h"
#include "checkpoint/folder.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/writer.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// OUTPUT under a temporary name beside it, until all is written.
class StagedFolder {
 public:
  explicit StagedFolder(const fs::path& final_name) : final_(final_name) {
    // A path may end with a slash; its last name then is empty.
    final_ = fs::absolute(final_).lexically_normal();
    final_ = final_.has_filename() ? final_ : final_.parent_path();
    check(!fs::exists(fs::symlink_status(final_)) ||
              (fs::is_directory(final_) && fs::is_empty(final_)),
          final_name.string(), " exists already; give --output a name that is not in use");
    if (fs::is_directory(final_)) {
      final_ = fs::canonical(final_);  // what a symbolic link means
    }
    staged_ = final_;
    staged_ += concat(".tmp-", getpid());
    std::error_code error;
    fs::remove_all(staged_, error);  // of an earlier process of this number
    fs::create_directories(staged_, error);
    check(fs::is_directory(staged_), "cannot create ", final_.string(), ": ", error.message());
  }
  ~StagedFolder() {
    std::error_code ignored;
    fs::remove_all(staged_, ignored);
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const fs::path& path() const { return staged_; }
  const fs::path& final_path() const { return final_; }

  void commit() {
    sync_folder(staged_);
    fs::rename(staged_, final_);  // replaces an empty folder
    sync_folder(final_.parent_path());
  }

 private:
  fs::path final_, staged_;
};

std::optional<TokenizerOptions> chosen_tokenizer(const ConvertOptions& options,
                                                 const ModelSource& source) {
  return names_tokenizer(options.tokenizer) ? std::optional(options.tokenizer)
                                            : source.record().tokenizer;
}

HfTokenizer tokenizer_files(const TokenizerOptions& options) {
  try {
    return find_hf_tokenizer(options);
  } catch (const Error& error) {
    throw Error(concat("the model's tokenizer cannot be read: ", error.what(),
                       "; --tokenizer names another place"));
  }
}

// Copies the tokenizer's files into the result, so that it stands alone: the options that name the
// copies, by the place where they will be.
TokenizerOptions copy_tokenizer(const StagedFolder& output, TokenizerOptions options,
                                std::int64_t max_positions) {
  const HfTokenizer found = tokenizer_files(options);
  if (found.files.empty()) {
    return options;
  }
  constexpr const char* kFolder = "tokenizer";
  fs::create_directory(output.path() / kFolder);
  write_tokenizer_files(output.path() / kFolder, found, max_positions);
  const fs::path copies = output.final_path() / kFolder;
  for (std::string* path :
       {&options.path, &options.vocab_file, &options.merge_file, &options.tokenizer_model}) {
    for (const HfTokenizer::File& file : found.files) {
      if (fs::is_directory(*path)) {
        *path = copies.string();
      } else if (file.source == *path) {
        *path = (copies / file.name).string();
      }
    }
  }
  return options;
}

void write_native(const StagedFolder& output, const ModelSource& source,
                  const std::optional<TokenizerOptions>& tokenizer) {
  Snapshot snapshot;
  if (source.state() != nullptr) {
    snapshot.state = *source.state();
  }
  ModelRecord record = source.record();
  record.tokenizer.reset();
  if (tokenizer) {
    record.tokenizer = copy_tokenizer(output, *tokenizer, record.model.positions.max_length);
  }
  set_model_record(snapshot.state, record);
  if (!(source.token_ids() == HfTokenIds())) {
    set_token_ids(snapshot.state, source.token_ids());
  }
  for (const auto* tensors : {&source.weights(), &source.others()}) {
    for (const auto& [name, entry] : *tensors) {
      const Tensor tensor = source.read(name);
      snapshot.pieces.push_back({.tensor = name,
                                 .dtype = tensor.dtype(),
                                 .box = Box::whole(tensor.shape()),
                                 .data = tensor.data(),
                                 .owner = tensor.storage()});
    }
  }
  CheckpointWriter writer(output.path(), single_rank_group(), {});
  writer.save(std::move(snapshot));
  const auto outcome = writer.finish();
  if (!outcome || !outcome->committed) {
    throw std::runtime_error(outcome ? outcome->message : "the checkpoint was not saved");
  }
}

void write_folder(const StagedFolder& output, const ModelSource& source,
                  const std::optional<TokenizerOptions>& tokenizer, std::size_t max_shard_bytes) {
  HfExportOptions extra{.tokens = source.token_ids(), .max_shard_bytes = max_shard_bytes};
  if (tokenizer) {
    extra.tokenizer = tokenizer_files(*tokenizer);
  }
  std::map<std::string, Tensor> weights;
  for (const auto& [name, entry] : source.weights()) {
    weights.emplace(name, source.read(name));
  }
  write_hf(source.stream(), output.path(), source.record().model, weights, extra);
}

}  // namespace

Conversion convert_model(Stream& stream, const ConvertOptions& options, const Log& log) {
  const auto source = open_model(stream, options.input, log);
  const auto tokenizer = chosen_tokenizer(options, *source);
  StagedFolder output(options.output);
  Conversion done{.source = source->folder(),
                  .written = output.final_path(),
                  .has_tokenizer = tokenizer.has_value()};
  for (const auto& [name, entry] : source->weights()) {
    done.num_parameters += entry.shape.numel();
  }
  if (options.to == ModelForm::native) {
    write_native(output, *source, tokenizer);
    done.written /= step_name(source->state() != nullptr ? source->state()->step : 0);
  } else {
    write_folder(output, *source, tokenizer, options.max_shard_bytes);
  }
  output.commit();
  return done;
}

}  // namespace bloomery
