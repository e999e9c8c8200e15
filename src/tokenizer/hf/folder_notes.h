// What the files beside a tokenizer say: how its special tokens are called, and which tokens were
// added to it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "tokenizer/hf/hf_tokenizer.h"

namespace bloomery::hf {

// From tokenizer_config.json, which becomes `config`, special_tokens_map.json and
// added_tokens.json, where they exist. `added` is filled as in a tokenizer.json: tokens with an id
// in the order of ids, then special tokens.
SpecialTokenNames read_folder_notes(const std::filesystem::path& folder,
                                    nlohmann::ordered_json& config, nlohmann::ordered_json& added);

// Adds to the "added_tokens" of a tokenizer.json those of `added` that it does not have.
void add_tokens(const nlohmann::ordered_json& added, nlohmann::ordered_json& root);

}  // namespace bloomery::hf
