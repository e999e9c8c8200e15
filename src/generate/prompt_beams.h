// Beam search for one prompt, wherever its tokens are computed: logits of the running beams go in,
// which beams go on comes out.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "generate/beam_search.h"
#include "generate/generator.h"
#include "generate/stop_text.h"

namespace bloomery {

class PromptBeams {
 public:
  // `begin`: what the decoder starts from, which the repetition penalty counts; `continued`: what
  // the text goes on from; `room`: the most tokens of a beam. The tokenizer must outlive this.
  PromptBeams(const Tokenizer& tokenizer, const GenerateOptions& options,
              std::vector<TokenId> begin, std::vector<TokenId> continued, std::int64_t room);

  // What follows running beam i, a number for each token of the vocabulary; asked by many threads.
  using Logits = std::function<std::span<const float>(std::int64_t i)>;
  // Returns for each beam that runs now the number of the one it continues.
  std::vector<std::int64_t> step(ThreadPool& pool, const Logits& logits);

  bool over() const { return search_.over(); }
  const std::vector<Beam>& running() const { return search_.running(); }  // at first one, empty
  // Best first, `count` at most; of prompt 0.
  std::vector<Generation> results(std::int64_t count) const;

 private:
  // What may follow a running beam: log-probabilities, and these with the repetition penalty.
  struct Row {
    std::vector<float> scores, log_probabilities;
    bool finite = true;
  };
  void fill(Row& row, std::span<const float> logits, const Beam& beam) const;
  StopText text_of(const Beam& beam) const;

  const Tokenizer& tokenizer_;
  const GenerateOptions options_;
  const std::vector<TokenId> begin_, continued_;
  const std::int64_t room_;
  BeamSearch search_;
  std::vector<Row> rows_;
};

}  // namespace bloomery
