// Metaspace: spaces become a visible mark, before which pieces begin.
#pragma once

#include <memory>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/pre_tokenizer.h"

namespace bloomery::hf {

enum class PrependScheme { always, first, never };

// The field "prepend_scheme", or what the older "add_prefix_space" says.
PrependScheme read_prepend_scheme(const Fields& fields);

std::unique_ptr<PreTokenizer> read_metaspace(const Fields& fields);

}  // namespace bloomery::hf
