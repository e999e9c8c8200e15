// The three arrays that say what sample k of a GPT split is, built exactly as Megatron-DeepSpeed's
// (docs/formats.md, "Samples").
//
//   document index  document ids, one copy of the split per epoch, shuffled
//   sample index    for every sample the place in the document index where it starts, and one more
//   shuffle index   which row of the sample index the k-th sample is
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/generators/numpy_random.h"
#include "samples/split.h"

namespace bloomery {

// Sizes of the arrays: what follows from the numbers of tokens and samples alone.
struct GptIndexPlan {
  std::int64_t seq_length = 0;
  std::int64_t num_epochs = 1;
  // The last epoch is mostly unused (below 80 %) and is shuffled apart, so that all earlier
  // documents are seen before its part.
  bool separate_last_epoch = false;
  std::int64_t samples_before_last = 0;  // samples of the epochs that are shuffled together
  std::int64_t total_samples = 0;        // at least what was asked for
};

// The fewest epochs of `tokens_per_epoch` that give `num_samples` samples of seq_length + 1 tokens,
// neighbours sharing one token, or exactly `exact_epochs`.
GptIndexPlan plan_gpt_index(std::int64_t tokens_per_epoch, std::int64_t seq_length,
                            std::int64_t num_samples,
                            std::optional<std::int64_t> exact_epochs = {});

std::vector<std::int32_t> build_document_index(const SplitRange& documents,
                                               const GptIndexPlan& plan, NumpyRandom& random);

// A row of the sample index, as it lies in the file.
struct SampleStart {
  std::int64_t position = 0;  // in the document index
  std::int64_t offset = 0;    // token of that document

  bool operator==(const SampleStart&) const = default;
};

// Hands out the plan's total_samples + 1 rows in order, some thousand at a time, so that they can
// go straight to a file. `lengths` are those of the documents from `first_document` on.
void build_sample_index(std::span<const std::int32_t> lengths, std::int64_t first_document,
                        std::span<const std::int32_t> document_index, const GptIndexPlan& plan,
                        const std::function<void(std::span<const SampleStart>)>& take);

// Whether so many samples need 64 bits in the shuffle index.
bool needs_wide_shuffle(std::int64_t total_samples);

// T: std::uint32_t, or std::int64_t when needs_wide_shuffle.
template <class T>
std::vector<T> build_shuffle_index(const GptIndexPlan& plan, NumpyRandom& random);

extern template std::vector<std::uint32_t> build_shuffle_index(const GptIndexPlan&, NumpyRandom&);
extern template std::vector<std::int64_t> build_shuffle_index(const GptIndexPlan&, NumpyRandom&);

}  // namespace bloomery
