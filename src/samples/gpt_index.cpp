#include "samples/gpt_index.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace bloomery {
namespace {

std::int64_t samples_in(std::int64_t epochs, std::int64_t tokens, std::int64_t seq_length) {
  return (epochs * tokens - 1) / seq_length;
}

std::int64_t fewest_epochs(std::int64_t tokens, std::int64_t seq_length, std::int64_t num_samples) {
  check(num_samples <= (INT64_MAX - tokens) / seq_length, num_samples, " samples of ", seq_length,
        " tokens are more than can be counted");
  return std::max<std::int64_t>((num_samples * seq_length + tokens) / tokens, 1);
}

// A window over the lengths of documents in shuffled order. Their memory is asked for well before
// it is read: the order is random and the array larger than any cache.
class ShuffledLengths {
 public:
  ShuffledLengths(std::span<const std::int32_t> lengths, std::int64_t first_document,
                  std::span<const std::int32_t> order)
      : lengths_(lengths.data()), first_(first_document), order_(order) {
    for (std::size_t i = 0; i < std::min(kAhead, order_.size()); ++i) {
      __builtin_prefetch(lengths_ + (order_[i] - first_));
    }
  }
  std::int64_t at(std::size_t position) const {
    if (position + kAhead < order_.size()) {
      __builtin_prefetch(lengths_ + (order_[position + kAhead] - first_));
    }
    return lengths_[order_[position] - first_];
  }

 private:
  static constexpr std::size_t kAhead = 64;
  const std::int32_t* lengths_;
  std::int64_t first_;
  std::span<const std::int32_t> order_;
};

}  // namespace

GptIndexPlan plan_gpt_index(std::int64_t tokens_per_epoch, std::int64_t seq_length,
                            std::int64_t num_samples, std::optional<std::int64_t> exact_epochs) {
  check(seq_length >= 1, "--seq-length must be at least 1, not ", seq_length);
  check(num_samples >= 0, "the number of samples must be at least 0, not ", num_samples);
  check(tokens_per_epoch >= 1, "the documents of this split have no tokens");
  GptIndexPlan plan;
  plan.seq_length = seq_length;
  plan.num_epochs = exact_epochs.value_or(fewest_epochs(tokens_per_epoch, seq_length, num_samples));
  check(plan.num_epochs >= 1 && plan.num_epochs <= INT64_MAX / tokens_per_epoch, plan.num_epochs,
        " epochs of ", tokens_per_epoch, " tokens are out of range");
  plan.total_samples = samples_in(plan.num_epochs, tokens_per_epoch, seq_length);
  plan.samples_before_last = plan.total_samples;
  if (plan.num_epochs == 1) {
    return plan;
  }
  const std::int64_t before = samples_in(plan.num_epochs - 1, tokens_per_epoch, seq_length);
  const std::int64_t from_last = num_samples - before;
  const std::int64_t per_epoch = samples_in(1, tokens_per_epoch, seq_length);
  check(from_last >= 0 && from_last <= per_epoch + 1, "--train-data-exact-num-epochs ",
        plan.num_epochs, " gives ", before, " to ", plan.total_samples, " samples, but ",
        num_samples, " are to be trained on; ask for a number of samples within that range");
  plan.separate_last_epoch =
      from_last < static_cast<std::int64_t>(0.80 * static_cast<double>(per_epoch));
  if (plan.separate_last_epoch) {
    plan.samples_before_last = before;
  }
  return plan;
}

std::vector<std::int32_t> build_document_index(const SplitRange& documents,
                                               const GptIndexPlan& plan, NumpyRandom& random) {
  check(documents.first >= 0 && documents.last <= INT32_MAX,
        "a corpus of more than 2,147,483,647 documents cannot be indexed; split it into several");
  const std::int64_t count = documents.size();
  std::vector<std::int32_t> index(plan.num_epochs * count);
  for (std::int64_t epoch = 0; epoch < plan.num_epochs; ++epoch) {
    std::iota(index.begin() + epoch * count, index.begin() + (epoch + 1) * count,
              static_cast<std::int32_t>(documents.first));
  }
  const std::int64_t together = (plan.num_epochs - (plan.separate_last_epoch ? 1 : 0)) * count;
  random.shuffle(std::span(index).first(together));
  random.shuffle(std::span(index).subspan(together));
  return index;
}

void build_sample_index(std::span<const std::int32_t> lengths, std::int64_t first_document,
                        std::span<const std::int32_t> document_index, const GptIndexPlan& plan,
                        const std::function<void(std::span<const SampleStart>)>& take) {
  constexpr std::size_t kRows = 1 << 14;
  std::vector<SampleStart> rows;
  rows.reserve(kRows);
  rows.push_back({0, 0});  // also when the first document is empty
  const ShuffledLengths shuffled(lengths, first_document, document_index);
  // Sample i starts at token i * seq_length of all documents one after another.
  std::int64_t remaining = plan.total_samples;
  std::int64_t to_next = plan.seq_length;  // tokens from here to the next start
  for (std::size_t position = 0; remaining > 0 && position < document_index.size(); ++position) {
    const std::int64_t length = shuffled.at(position);
    for (; to_next < length && remaining > 0; to_next += plan.seq_length, --remaining) {
      rows.push_back({static_cast<std::int64_t>(position), to_next});
      if (rows.size() == kRows) {
        take(rows);
        rows.clear();
      }
    }
    to_next -= length;
  }
  check(remaining == 0, "the lengths of the documents do not add up to the tokens of the plan");
  take(rows);
}

bool needs_wide_shuffle(std::int64_t total_samples) { return total_samples >= UINT32_MAX - 1; }

template <class T>
std::vector<T> build_shuffle_index(const GptIndexPlan& plan, NumpyRandom& random) {
  std::vector<T> index(plan.total_samples);
  std::iota(index.begin(), index.end(), T{0});
  random.shuffle(std::span(index).first(plan.samples_before_last));
  random.shuffle(std::span(index).subspan(plan.samples_before_last));
  return index;
}

template std::vector<std::uint32_t> build_shuffle_index(const GptIndexPlan&, NumpyRandom&);
template std::vector<std::int64_t> build_shuffle_index(const GptIndexPlan&, NumpyRandom&);

}  // namespace bloomery
