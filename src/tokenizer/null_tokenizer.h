// Megatron's NullTokenizer: the text is numbers with spaces between, and they are the ids.
#pragma once

#include <memory>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// Ids are 0 ... vocab_size, the last of which ends documents.
std::shared_ptr<const Tokenizer> make_null_tokenizer(std::int64_t vocab_size);

}  // namespace bloomery
