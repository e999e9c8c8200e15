#pragma once

#include "tokenizer/sentencepiece/processor.h"

namespace bloomery {

// SentencePieceKind::megatron, see sentencepiece.h.
std::shared_ptr<const Tokenizer> make_megatron_sentencepiece(
    std::unique_ptr<const SentencePieceProcessor> processor, std::int64_t extra_ids);

}  // namespace bloomery
