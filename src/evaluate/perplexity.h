// Perplexity of text: of documents (PERPLEXITY), and per word of WikiText (WIKITEXT103) as Megatron
// defines it.
#pragma once

#include <optional>
#include <string>

#include "evaluate/scorer.h"
#include "generate/loaded_model.h"

namespace bloomery {

struct PerplexityOptions {
  // One text, JSON lines with a document each, or the prefix of a tokenised corpus.
  std::string data;
  std::string json_key = "text";
  std::int64_t seq_length = 0;        // tokens that the model sees at once; 0: all it can
  std::int64_t micro_batch_size = 8;  // windows
  // Windows start every so many tokens; none: seq_length for PERPLEXITY, 32 for WIKITEXT103.
  std::optional<std::int64_t> overlapping_eval;
  // An end-of-document token before each document, so that its first token is scored too, and one
  // behind it, so that its end is (a tokenised corpus has it already).
  bool prepend_eod = false, append_eod = false;
  bool allow_tokenizer_mismatch = false;  // of a corpus, by the note beside it
};

struct PerplexityResult {
  double nll = 0;           // sum of -ln p over the scored tokens
  std::int64_t tokens = 0;  // scored: all but the first of each document
  // Runs without white space in the texts, those of a corpus decoded; none without a tokenizer.
  std::optional<std::int64_t> words;

  double ppl() const;  // e^(nll / tokens)
};

// Documents are scored one by one, none sees another. An Error when nothing can be scored.
// `progress` gets the numbers of tokens done and in all.
PerplexityResult evaluate_perplexity(LoadedModel& model, const PerplexityOptions& options,
                                     const ScoringProgress& progress = {});

struct WikitextResult {
  double loss = 0;                   // mean of -ln p per token
  std::int64_t tokens = 0;           // of the detokenized text
  std::int64_t original_tokens = 0;  // of the file, separated by single spaces

  double ppl() const;           // e^min(20, loss)
  double adjusted_ppl() const;  // e^min(20, loss * token ratio): per original token
  double token_ratio() const;
};

// The whole file is one text, detokenized (evaluate/detokenize.h).
WikitextResult evaluate_wikitext(LoadedModel& model, const PerplexityOptions& options,
                                 const ScoringProgress& progress = {});

}  // namespace bloomery
