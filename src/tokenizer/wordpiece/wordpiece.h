// BERT's tokenizer, from a vocab.txt.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "tokenizer/tokenizer.h"

namespace bloomery {

namespace hf {
struct ModelTables;
}

struct WordPieceOptions {
  // Without a value: a vocabulary that has the piece A is cased.
  std::optional<bool> lowercase;
  std::size_t longest_word = 100;  // in characters; a longer word is unknown
  // Megatron's BertWordPieceLowerCase and BertWordPieceCase: [BOS], [EOS] and <extra_id_0> ... come
  // after the vocabulary unless it has them.
  bool megatron = false;
  std::int64_t extra_ids = 0;
};

// What Megatron's types ask for: words of up to 200 characters, its own tokens.
inline WordPieceOptions megatron_wordpiece(bool lowercase, std::int64_t extra_ids) {
  return {lowercase, 200, true, extra_ids};
}

// Encoding and decoding are those of Hugging Face's fast BERT tokenizer. Special tokens in the text
// are [UNK], [SEP], [PAD], [CLS] and [MASK] where the vocabulary has them, and Megatron's; with
// EncodeOptions::add_special_tokens the text stands between [CLS] and [SEP]. The line of a piece
// in the file, counted from 0, is its id; of equal lines the last is the one that is found.
std::shared_ptr<const Tokenizer> load_wordpiece(const std::filesystem::path& vocab_txt,
                                                const WordPieceOptions& options = {});

// The same from the contents of the file; `name` is for messages.
std::shared_ptr<const Tokenizer> parse_wordpiece(std::string contents, const std::string& name,
                                                 const WordPieceOptions& options = {});

// What a tokenizer.json would say of such a vocabulary, whose lines are in the tables.
nlohmann::ordered_json word_piece_settings(hf::ModelTables& tables);

}  // namespace bloomery
