// LAMBADA: does the model predict how a passage ends? As Megatron defines it.
#pragma once

#include <string>
#include <string_view>

#include "evaluate/scorer.h"
#include "generate/loaded_model.h"

namespace bloomery {

struct LambadaOptions {
  std::string data;  // JSON lines with `text`
  // The last whole word must be predicted, not only the last token.
  bool strict = false;
  std::int64_t seq_length = 0;  // the longest passage, whose beginning is cut; 0: all positions
  std::int64_t micro_batch_size = 8;  // passages
};

struct LambadaResult {
  std::int64_t correct = 0, total = 0;
  std::int64_t cut = 0;  // passages whose beginning did not fit
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(total); }
};

// A passage is correct when each of its label tokens is the most probable one, given all tokens
// before it. A label that is the first token of all has nothing before it and is not asked for.
// `progress` gets the numbers of passages done and in all.
LambadaResult evaluate_lambada(LoadedModel& model, const LambadaOptions& options,
                               const ScoringProgress& progress = {});

// A passage as tokens, of which the last `num_labels` are to be predicted.
struct Passage {
  std::vector<TokenId> tokens;
  std::int64_t num_labels = 0;
};
// `encoder` puts the tokenizer's own tokens around a text, `word_encoder` does not: a last word
// goes on behind the first.
Passage make_passage(Encoder& encoder, Encoder& word_encoder, std::string_view text, bool strict);

}  // namespace bloomery
