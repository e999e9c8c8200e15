// BERT's text cleaning: control characters out, white space to spaces, ideographs set apart,
// accents off, lowercase.
#pragma once

#include <memory>

#include "config/json_fields.h"
#include "tokenizer/hf/normalizer.h"
#include "tokenizer/wordpiece/bert_text.h"

namespace bloomery::hf {

BertTextOptions read_bert_options(const JsonFields& fields);
std::unique_ptr<Normalizer> read_bert_normalizer(const JsonFields& fields);

}  // namespace bloomery::hf
