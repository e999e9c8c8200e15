// The Precompiled normalizer: SentencePiece's rules of replacement as Hugging Face applies them,
// to whole grapheme clusters first and to single characters otherwise.
#pragma once

#include <memory>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/normalizer.h"

namespace bloomery::hf {

std::unique_ptr<Normalizer> read_precompiled(const Fields& fields);

}  // namespace bloomery::hf
