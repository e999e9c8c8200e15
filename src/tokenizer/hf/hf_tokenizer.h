// Hugging Face's tokenizer.json: added tokens, normalizer, pre-tokenizers, model, post-processor
// and decoder, as tokenizers 0.23 runs them. The fields "truncation" and "padding" are left alone,
// as transformers does unless asked for them: encoding never shortens a text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// How the special tokens are called, where files beside the tokenizer.json say so.
struct SpecialTokenNames {
  std::string bos, eos, pad, unk, cls, sep, mask;
};

// `text` is the file's contents and `name` what messages call it.
std::shared_ptr<const Tokenizer> read_hf_tokenizer(std::string_view text, const std::string& name,
                                                   const SpecialTokenNames& special = {});

// The two steps of it: an Error if the text is no JSON or too deep; a tokenizer of the contents.
nlohmann::json parse_tokenizer_json(std::string_view text, const std::string& name);
std::shared_ptr<const Tokenizer> make_hf_tokenizer(const nlohmann::json& root,
                                                   const std::string& name,
                                                   const SpecialTokenNames& special = {});

// A folder of Hugging Face files: tokenizer.json first; else a SentencePiece model; else vocab.json
// and merges.txt; else vocab.txt. Names and added tokens are those of tokenizer_config.json,
// special_tokens_map.json and added_tokens.json, as far as a tokenizer.json does not have them; a
// SentencePiece model has its own.
std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder);

}  // namespace bloomery
