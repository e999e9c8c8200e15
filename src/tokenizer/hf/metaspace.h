// Metaspace: spaces become a visible mark, before which pieces begin.
#pragma once

#include <memory>

#include "config/json_fields.h"
#include "tokenizer/hf/pre_tokenizer.h"

namespace bloomery::hf {

enum class PrependScheme { always, first, never };

// The field "prepend_scheme", or what the older "add_prefix_space" says.
PrependScheme read_prepend_scheme(const JsonFields& fields);

std::unique_ptr<PreTokenizer> read_metaspace(const JsonFields& fields);

}  // namespace bloomery::hf
