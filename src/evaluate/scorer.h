// Negative log likelihoods of token sequences under a model, in micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "generate/loaded_model.h"

namespace bloomery {

// A part of a sequence that the model sees at once: it reads `length` tokens from `begin` on and
// predicts the one after each; the last `scored` predictions count.
struct Window {
  std::int64_t begin = 0, length = 0, scored = 0;
  bool operator==(const Window&) const = default;
};

// Megatron's windows over a sequence of `num_tokens`: they start every `stride` tokens; the first
// counts whole, each later one with its last `stride` predictions. Every token but the first counts
// once. Windows without predictions that count are left out. 1 <= stride <= seq_length.
std::vector<Window> windows_over(std::int64_t num_tokens, std::int64_t seq_length,
                                 std::int64_t stride);

// Tokens to the device, right-padded to the longest: causal attention never looks there.
Batch upload_tokens(Stream& stream, std::span<const std::span<const TokenId>> sequences,
                    std::span<const std::span<const TokenId>> labels = {});

// So many are done of so many, or of 0 when that is not known.
using ScoringProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// The data-parallel rank that computes the micro-batch of this number.
bool is_own_batch(Mesh& mesh, std::int64_t number);

// Adds up what it is given. The sum does not depend on how sequences fall into micro-batches, nor
// on the ranks that compute them: data-parallel ones take turns.
class Scorer {
 public:
  // `progress` hears after each micro-batch how many tokens were scored, of how many.
  Scorer(LoadedModel& model, std::int64_t micro_batch_size, ScoringProgress progress = {});
  // How many tokens will be scored in all, for the progress.
  void expect(std::int64_t num_tokens) { num_expected_ = num_tokens; }

  // Tokens that the model reads and, at the end, the one to predict last: scored + 1 at least.
  void add(std::span<const TokenId> tokens, std::int64_t scored);
  // Everything added so far, computed: the sum of -ln p, and of how many tokens.
  double negative_log_likelihood();
  std::int64_t num_scored() const { return num_scored_; }

 private:
  struct Item {
    std::size_t first = 0, count = 0;  // in tokens_
    std::int64_t scored = 0;
    double sum = 0;
  };
  void flush();
  void compute(std::span<Item* const> items);
  // Sums of the micro-batches of this rank; afterwards of all.
  void exchange_sums(std::span<Item* const> order);

  LoadedModel& model_;
  std::int64_t micro_batch_size_;
  ScoringProgress progress_;
  std::vector<TokenId> tokens_;
  std::vector<Item> items_;
  double sum_ = 0;
  std::int64_t num_scored_ = 0, num_computed_ = 0, num_expected_ = 0;
};

// An Error when a token is not in the model's vocabulary; `place` says where it comes from.
void check_tokens(std::span<const TokenId> tokens, std::int64_t vocabulary,
                  const std::string& place);
// What the model can see at once: `asked`, or all its positions when that is 0. An Error when asked
// for more.
std::int64_t checked_seq_length(const ModelOptions& options, std::int64_t asked);

}  // namespace bloomery
