// How a piece is cut where something matches: the five behaviours of Hugging Face's splits.
#pragma once

#include <string>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/hf/pieces.h"

namespace bloomery::hf {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// A text of one character.
char32_t read_character(const JsonFields& fields, const char* name);

// From the field "behavior", in either spelling; `otherwise` when it is absent.
Behavior read_behavior(const JsonFields& fields, Behavior otherwise);

// A stretch of a piece that matches, or that lies between matches. Together they cover the piece.
struct Part {
  std::size_t begin, end;
  bool matches;
};

// Appends what the behaviour makes of a piece's parts.
void append_split(const Piece& piece, const std::vector<Part>& parts, Behavior behavior,
                  std::vector<Piece>& result);

}  // namespace bloomery::hf
