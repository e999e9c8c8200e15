// Whether a folder holds a model in any form that we read, and what to tell whoever named one that
// does not.
#pragma once

#include <filesystem>
#include <string>

namespace bloomery {

// A checkpoint, good or damaged, of ours, Megatron's or DeepSpeed's, or a Hugging Face folder. An
// Error when a tracker file there names a checkpoint that is gone.
bool holds_model(const std::filesystem::path& path);

// Of a path without a model: what is wrong with it and what to give instead.
std::string missing_model(const std::filesystem::path& path);

// Whether both name one folder, which need not exist yet.
bool same_folder(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace bloomery
