#include "evaluate/scorer.h"

#include <algorithm>
#include <numeric>

#include "autograd/metrics.h"

namespace bloomery {
namespace {

constexpr std::size_t kQueuedTokens = 1 << 22;  // sequences are sorted by length among these

std::vector<std::int32_t> padded(std::span<const std::span<const TokenId>> rows,
                                 std::size_t length) {
  std::vector<std::int32_t> all;
  all.reserve(rows.size() * length);
  for (const std::span<const TokenId> row : rows) {
    all.insert(all.end(), row.begin(), row.end());
    all.insert(all.end(), length - row.size(), 0);
  }
  return all;
}

}  // namespace

std::vector<Window> windows_over(std::int64_t num_tokens, std::int64_t seq_length,
                                 std::int64_t stride) {
  check(stride >= 1 && stride <= seq_length, "windows of ", seq_length,
        " tokens cannot start every ", stride, " tokens; --overlapping-eval is at least 1 and at ",
        "most --seq-length");
  std::vector<Window> windows;
  const std::int64_t targets = num_tokens - 1;
  for (std::int64_t begin = 0; begin < targets; begin += stride) {
    const std::int64_t first = begin == 0 ? 0 : begin + seq_length - stride;
    const std::int64_t end = std::min(begin + seq_length, targets);
    if (first >= end) {
      break;
    }
    windows.push_back({begin, end - begin, end - first});
  }
  return windows;
}

Batch upload_tokens(Stream& stream, std::span<const std::span<const TokenId>> sequences,
                    std::span<const std::span<const TokenId>> labels) {
  std::size_t length = 0;
  for (const auto& sequence : sequences) {
    length = std::max(length, sequence.size());
  }
  Batch batch;
  batch.num_sequences = static_cast<std::int64_t>(sequences.size());
  batch.length = static_cast<std::int64_t>(length);
  const Shape shape{batch.num_tokens()};
  std::vector<std::int32_t> places(length);
  std::iota(places.begin(), places.end(), 0);
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    positions.insert(positions.end(), places.begin(), places.end());
  }
  batch.tokens = Tensor::from_host(stream, padded(sequences, length), shape);
  if (!labels.empty()) {
    batch.labels = Tensor::from_host(stream, padded(labels, length), shape);
  }
  batch.positions = Tensor::from_host(stream, positions, shape);
  batch.places = Tensor::from_host(stream, places, {batch.length});
  batch.samples =
      Tensor::from_host(stream, std::vector<std::int64_t>(sequences.size()), {batch.num_sequences});
  return batch;
}

bool is_own_batch(Mesh& mesh, std::int64_t number) {
  return number % mesh.degree(Axis::data) == mesh.coordinate(Axis::data);
}

Scorer::Scorer(LoadedModel& model, std::int64_t micro_batch_size, ScoringProgress progress)
    : model_(model), micro_batch_size_(micro_batch_size), progress_(std::move(progress)) {
  check(micro_batch_size >= 1, "a micro-batch of ", micro_batch_size, " sequences");
}

void Scorer::add(std::span<const TokenId> tokens, std::int64_t scored) {
  check(scored >= 0 && scored < static_cast<std::int64_t>(tokens.size()), tokens.size(),
        " tokens cannot score ", scored, " predictions");
  if (scored == 0) {
    return;
  }
  items_.push_back({tokens_.size(), tokens.size(), scored, 0});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  num_scored_ += scored;
  if (tokens_.size() >= kQueuedTokens) {
    flush();
  }
}

double Scorer::negative_log_likelihood() {
  flush();
  return sum_;
}

void Scorer::flush() {
  std::vector<Item*> order;
  for (Item& item : items_) {
    order.push_back(&item);
  }
  std::ranges::stable_sort(order, std::greater(), [](const Item* item) { return item->count; });
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t count =
        std::min(order.size() - begin, static_cast<std::size_t>(micro_batch_size_));
    const auto items = std::span(order).subspan(begin, count);
    if (is_own_batch(model_.mesh(), static_cast<std::int64_t>(begin) / micro_batch_size_)) {
      compute(items);
    }
    for (const Item* item : items) {
      num_computed_ += item->scored;
    }
    begin += count;
    if (progress_) {
      progress_(num_computed_, num_expected_);
    }
  }
  exchange_sums(order);
  for (const Item& item : items_) {
    sum_ += item.sum;
  }
  items_.clear();
  tokens_.clear();
}

void Scorer::exchange_sums(std::span<Item* const> order) {
  const int ranks = model_.mesh().degree(Axis::data);
  if (ranks == 1) {
    return;
  }
  std::vector<double> mine;
  for (const Item* item : order) {
    mine.push_back(item->sum);
  }
  const auto all = model_.mesh().axis(Axis::data).host().gather_numbers("scores", mine);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto batch = static_cast<std::int64_t>(i) / micro_batch_size_;
    order[i]->sum = all.at(static_cast<std::size_t>(batch % ranks)).at(i);
  }
}

void Scorer::compute(std::span<Item* const> items) {
  std::vector<std::span<const TokenId>> inputs, labels;
  for (const Item* item : items) {
    const auto tokens = std::span(tokens_).subspan(item->first, item->count);
    inputs.push_back(tokens.first(tokens.size() - 1));
    labels.push_back(tokens.subspan(1));
  }
  const Batch batch = upload_tokens(model_.stream(), inputs, labels);
  Context context = model_.context(batch);
  Metrics metrics;
  context.metrics = &metrics;
  model_.model().forward(context);
  const std::vector<float> losses = metrics.token_losses.to_host<float>(model_.stream());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto end = losses.begin() + static_cast<std::int64_t>(i) * batch.length +
                     static_cast<std::int64_t>(inputs[i].size());
    items[i]->sum = std::accumulate(end - items[i]->scored, end, 0.0);
  }
}

void check_tokens(std::span<const TokenId> tokens, std::int64_t vocabulary,
                  const std::string& place) {
  for (const TokenId token : tokens) {
    check(token >= 0 && token < vocabulary, place, ": token ", token,
          " is not in the model's vocabulary of ", vocabulary,
          "; the tokenizer must be the one the model was trained with");
  }
}

std::int64_t checked_seq_length(const ModelOptions& options, std::int64_t asked) {
  const std::optional<std::int64_t> most = max_length(options);
  check(!most || asked <= *most, "--seq-length ", asked, " is more than the ", *most,
        " positions that the model learned");
  return asked > 0 ? asked : options.positions.max_length;
}

}  // namespace bloomery
