// The models that look a whole piece up, or cut it by their own rule: WordLevel, WordPiece and
// Unigram.
#pragma once

#include <memory>

#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

std::unique_ptr<Model> read_word_level(const Fields& fields, const ModelTables& tables);
std::unique_ptr<Model> read_word_piece(const Fields& fields, const ModelTables& tables);
std::unique_ptr<Model> read_unigram(const Fields& fields, const ModelTables& tables);

}  // namespace bloomery::hf
