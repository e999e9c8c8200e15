// Hugging Face's tokenizer.json: added tokens, normalizer, pre-tokenizers, model, post-processor
// and decoder, as tokenizers 0.23 runs them. The fields "truncation" and "padding" are left alone,
// as transformers does unless asked for them: encoding never shortens a text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// How the special tokens are called, where files beside the tokenizer.json say so.
struct SpecialTokenNames {
  std::string bos = {}, eos = {}, pad = {}, unk = {}, cls = {}, sep = {}, mask = {};
  bool usual = true;    // what has no name here may have one of the usual names
  bool has_end = true;  // documents end with eos, or else sep
};

namespace hf {
struct ModelTables;
}

// `text` is the file's contents and `name` what messages call it.
std::shared_ptr<const Tokenizer> read_hf_tokenizer(std::string_view text, const std::string& name,
                                                   const SpecialTokenNames& special = {});

// The pipeline of every kind of file: `settings` are a tokenizer.json without the tables of its
// model.
std::shared_ptr<const Tokenizer> make_hf_tokenizer(const JsonFields& settings,
                                                   hf::ModelTables& tables, const std::string& name,
                                                   const SpecialTokenNames& special = {});

// A folder of Hugging Face files: tokenizer.json first; else a SentencePiece model; else vocab.json
// and merges.txt; else vocab.txt. Names and added tokens are those of tokenizer_config.json,
// special_tokens_map.json and added_tokens.json, as far as a tokenizer.json does not have them.
std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder);

}  // namespace bloomery
