#include "checkpoint/stored_model.h"

#include "base/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/hf/hf_form.h"
#include "checkpoint/hf/hf_tokenizer_files.h"

namespace bloomery {

namespace fs = std::filesystem;

bool is_hf_folder(const fs::path& folder) {
  return fs::exists(folder / "config.json") && checkpoints_at(folder).empty();
}

ModelRecord stored_model(const CheckpointReader& checkpoint) {
  ModelRecord record = model_record(checkpoint.state(), checkpoint.folder().string());
  if (auto carried = carried_tokenizer(checkpoint)) {
    record.tokenizer = std::move(carried);
  }
  return record;
}

std::optional<ModelRecord> stored_model(const fs::path& folder) {
  if (is_hf_folder(folder)) {
    const fs::path path = folder / "config.json";
    ModelRecord record{.model = read_hf_config(read_file(path), path.string()).options};
    if (has_tokenizer_files(folder)) {
      record.tokenizer = TokenizerOptions{.path = folder.string()};
    }
    return record;
  }
  const std::optional<CheckpointReader> reader = find_newest(folder, nullptr, Log());
  return reader ? std::optional(stored_model(*reader)) : std::nullopt;
}

}  // namespace bloomery
