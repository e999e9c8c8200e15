// The Precompiled normalizer: SentencePiece's rules of replacement as Hugging Face applies them,
// to whole grapheme clusters first and to single characters otherwise.
#pragma once

#include <memory>

#include "config/json_fields.h"
#include "tokenizer/hf/normalizer.h"

namespace bloomery::hf {

std::unique_ptr<Normalizer> read_precompiled(const JsonFields& fields);

}  // namespace bloomery::hf
