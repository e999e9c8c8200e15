// The models that look a whole piece up, or cut it by their own rule: WordLevel, WordPiece and
// Unigram.
#pragma once

#include <memory>

#include "config/json_fields.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

std::unique_ptr<Model> read_word_level(const JsonFields& fields, const ModelTables& tables);
std::unique_ptr<Model> read_word_piece(const JsonFields& fields, const ModelTables& tables);
std::unique_ptr<Model> read_unigram(const JsonFields& fields, const ModelTables& tables);

}  // namespace bloomery::hf
