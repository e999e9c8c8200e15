// The pre-tokenizers of a tokenizer.json: how a normalised text falls into pieces for the model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/hf/pieces.h"

namespace bloomery::hf {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;  // a Sequence is laid out flat
  bool leave_bytes = false;                          // pieces end as bytes, not as their spelling
  // Set when the steps together are byte-level splitting by one known pattern: then an engine that
  // scans and merges in one pass may take their place.
  struct ByteLevelSplit {
    SplitPattern pattern;
    bool add_prefix_space;
  };
  std::optional<ByteLevelSplit> byte_level;
  // Set when what lies between white space is a piece, a U+2581 before it.
  bool marked_words = false;
};

// From the object under "pre_tokenizer"; an unknown type or pattern is an Error that names it.
PreTokenizers read_pre_tokenizers(const JsonFields& object);

}  // namespace bloomery::hf
