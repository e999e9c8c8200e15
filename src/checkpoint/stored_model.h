// What kind of model a folder holds, by its record or config.json alone.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/model_record.h"
#include "checkpoint/reader.h"

namespace bloomery {

// A checkpoint's record, with the tokenizer that it carries, if it does.
ModelRecord stored_model(const CheckpointReader& checkpoint);

// A folder with Hugging Face's config.json and no checkpoint of ours.
bool is_hf_folder(const std::filesystem::path& folder);

// The model of a --save folder's newest checkpoint, of one step-N, or of a Hugging Face folder;
// none where there is no model. An Error when what is there cannot be read.
std::optional<ModelRecord> stored_model(const std::filesystem::path& folder);

}  // namespace bloomery
