// The post-processor of a tokenizer.json: the tokens that it puts around a text.
#pragma once

#include <vector>

#include "config/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace bloomery::hf {

struct PostProcessor {
  std::vector<TokenId> before, after;
};

// From the object under "post_processor"; an unknown type is an Error that names it.
PostProcessor read_post_processor(const JsonFields& object);

}  // namespace bloomery::hf
