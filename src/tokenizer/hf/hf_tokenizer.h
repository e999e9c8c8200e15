// Hugging Face's tokenizer.json: added tokens, normalizer, pre-tokenizers, model, post-processor
// and decoder, as tokenizers 0.23 runs them. The fields "truncation" and "padding" are left alone,
// as transformers does unless asked for them: encoding never shortens a text.
#pragma once

#include <memory>
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

// A folder of Hugging Face files: tokenizer.json first; else a SentencePiece model; else
// vocab.json and merges.txt; else vocab.txt.
std::shared_ptr<const Tokenizer> load_hf_folder(const std::string& folder);

}  // namespace bloomery
