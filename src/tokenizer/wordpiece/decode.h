// WordPiece tokens back to text.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// Appends one token: continuations to the text before them, others after a space; then the spaces
// that BERT's splitting has put before punctuation and English contractions are taken out, within
// each token, as Hugging Face does.
void append_wordpiece(std::string& text, std::string_view token, bool is_first);

}  // namespace bloomery
