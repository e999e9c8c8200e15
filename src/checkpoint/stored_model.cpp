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
  return reader ? std::optional(model_record(reader->state(), reader->folder().string()))
                : std::nullopt;
}

}  // namespace bloomery
