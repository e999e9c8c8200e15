// The tables of a model, vocabulary and merges, which are almost all of a tokenizer.json: read
// straight from the text, without a tree of JSON. Files of other kinds fill them too.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace bloomery::hf {

struct ModelTables {
  ModelTables() = default;
  ModelTables(const ModelTables&) = delete;
  ModelTables& operator=(const ModelTables&) = delete;

  enum class Kind { absent, object, array, other };
  struct Token {
    std::string_view piece;
    // As the file writes it: an id, or the score in a Unigram's array. Empty: tokens are numbered.
    std::string_view value = {};
  };
  struct Merge {
    std::string_view left, right;
    std::int64_t line;  // of a merges.txt; in an array the place, from 0
  };
  // The merges of a file, in their order. Most results follow one another in the vocabulary: such a
  // merge is kept as the length of its left part alone.
  class Merges {
   public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    explicit Merges(const std::vector<Token>& vocab) : vocab_(vocab) {}
    void reserve(std::size_t count) { notes_.reserve(count); }
    void add(const Merge& merge);
    std::size_t size() const { return notes_.size(); }
    bool empty() const { return notes_.empty(); }
    // The place of the result in the vocabulary, if that is known.
    std::uint32_t result(std::size_t i) const { return notes_[i].token; }
    Merge operator[](std::size_t i) const;

   private:
    struct Note {
      std::uint32_t token;  // whose piece the left part begins; kNone: it is among the others
      std::uint32_t left;   // bytes; or the place there
    };
    const std::vector<Token>& vocab_;
    std::vector<Note> notes_;
    std::vector<Merge> others_;
    std::size_t next_ = 0;         // token that is expected
    std::int64_t first_line_ = 0;  // of merges that are noted: lines follow one another
  };

  Kind vocab_kind = Kind::absent, merges_kind = Kind::absent;
  std::vector<Token> vocab;
  Merges merges{vocab};
  // What the views refer to: whole files, and texts with escapes as they are without them.
  std::deque<std::string> kept;

  // What files have that are no tokenizer.json.
  std::string merges_name;              // of the file that has the merges line by line
  std::optional<Vocabulary> ranks;      // pieces are bytes, not their spelling, and ids are ranks
  bool unique_ids = false;              // no id may belong to two tokens
  bool added_ids = false;               // added tokens have the ids that the settings give them
  std::optional<TokenId> unknown_byte;  // of a byte that is no token

  // The text as a view that lives as long as the tables.
  std::string_view keep(std::string text) { return kept.emplace_back(std::move(text)); }
};

// Parses a tokenizer.json, which must outlive the tables; what lies under model.vocab and
// model.merges goes to the tables, and is empty in what is returned. `name` is for messages.
nlohmann::ordered_json read_tokenizer_json(std::string_view text, const std::string& name,
                                           ModelTables& tables);

// Reads a vocab.json: {"token": id, ...}.
void read_vocab_json(std::string text, const std::string& name, ModelTables& tables);

// Calls visit(line) for each line, without its end.
template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
  }
}

bool has_token(const ModelTables& tables, std::string_view piece);
// Adds the special tokens of a list that the vocabulary has to an array of added tokens.
void add_known(std::initializer_list<const char*> names, const ModelTables& tables,
               nlohmann::ordered_json& added);

// Calls visit(piece, id) for each token of the tables; ids are checked to be whole numbers that are
// not sparse.
void each_token(const ModelTables& tables,
                const std::function<void(std::string_view, TokenId)>& visit);
// The id of the token at a place of the vocabulary, as each_token gives it.
TokenId id_at(const ModelTables& tables, std::size_t place);
// The tokens of the tables.
Vocabulary read_vocabulary(const ModelTables& tables);

}  // namespace bloomery::hf
