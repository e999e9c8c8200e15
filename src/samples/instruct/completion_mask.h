// Which tokens are answers, found by the tokens of templates before them: the rule of TRL's
// DataCollatorForCompletionOnlyLM.
#pragma once

#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// 1 for tokens to learn. Without an instruction template: those behind the last occurrence of the
// response template. With one: between each response template and the next instruction template.
// Nothing is learnt where one of them is not found.
std::vector<std::uint8_t> completion_mask(std::span<const TokenId> ids,
                                          std::span<const TokenId> response,
                                          std::span<const TokenId> instruction);

}  // namespace bloomery
