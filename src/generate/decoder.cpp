#include "generate/decoder.h"

#include <algorithm>
#include <numeric>

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

Decoder::Decoder(const Model& model, Stream& stream, Mesh& mesh, const DecoderOptions& options)
    : model_(model), stream_(stream), mesh_(mesh), options_(options) {
  check(mesh.degree(Axis::tensor) == 1, "generation runs on one rank, not on ", mesh.place());
  if (!options.recompute) {
    cache_ = std::make_unique<Cache>(stream, options.num_sequences, options.capacity);
  }
}

// Rows are padded at their ends to the longest with token 0 at position 0.
Batch Decoder::make_batch(const std::vector<std::vector<TokenId>>& tokens,
                          const std::vector<std::int64_t>& starts) const {
  Batch batch;
  batch.num_sequences = static_cast<std::int64_t>(tokens.size());
  for (const auto& row : tokens) {
    check(!row.empty(), "generation: a sequence was fed no token");
    batch.length = std::max(batch.length, static_cast<std::int64_t>(row.size()));
  }
  const std::int64_t count = batch.num_tokens();
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(2 * count), 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto first = numbers.begin() + static_cast<std::int64_t>(i) * batch.length;
    std::copy(tokens[i].begin(), tokens[i].end(), first);
    const auto positions = first + count;
    std::iota(positions, positions + static_cast<std::int64_t>(tokens[i].size()),
              static_cast<std::int32_t>(starts[i]));
    numbers.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(i) * batch.length +
                                                static_cast<std::int64_t>(tokens[i].size()) - 1));
  }
  const Tensor all =
      Tensor::from_host(stream_, numbers, {static_cast<std::int64_t>(numbers.size())});
  batch.tokens = all.range(0, {count});
  batch.positions = all.range(count, {count});
  batch.output_rows = all.range(2 * count, {batch.num_sequences});
  return batch;
}

Tensor Decoder::forward(Stream& stream, const Batch& batch) const {
  Context context{.stream = stream, .mesh = mesh_, .batch = batch, .cache = cache_.get()};
  return model_.forward(context).stream.data;
}

void Decoder::compute(const std::vector<std::vector<TokenId>>& tokens,
                      const std::vector<std::int64_t>& starts) {
  logits_ = {};
  logits_ = forward(stream_, make_batch(tokens, starts));
  on_host_ = false;
  rows_.resize(tokens.size());
  std::iota(rows_.begin(), rows_.end(), 0);
}

void Decoder::feed(const std::vector<std::vector<TokenId>>& tokens) {
  check(!tokens.empty() && static_cast<std::int64_t>(tokens.size()) <= options_.num_sequences,
        "generation: ", tokens.size(), " sequences, but there is room for 1 to ",
        options_.num_sequences);
  const bool first = rows_.empty();
  check(first || tokens.size() == rows_.size(), "generation: tokens for ", tokens.size(),
        " sequences, but there are ", rows_.size());
  std::vector<std::int64_t> starts(tokens.size(), 0);
  if (cache_ == nullptr) {
    histories_.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      histories_[i].insert(histories_[i].end(), tokens[i].begin(), tokens[i].end());
    }
    compute(histories_, starts);
    return;
  }
  if (first) {
    std::vector<std::int64_t> used(tokens.size());
    std::iota(used.begin(), used.end(), 0);
    cache_->select(used);
  }
  std::vector<std::int32_t> counts;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    starts[i] = cache_->length(static_cast<std::int64_t>(i));
    counts.push_back(static_cast<std::int32_t>(tokens[i].size()));
  }
  cache_->begin(counts);
  compute(tokens, starts);
}

void Decoder::select(std::span<const std::int64_t> parents) {
  if (cache_ != nullptr) {
    cache_->select(parents);
  }
  std::vector<std::vector<TokenId>> histories;
  std::vector<std::int64_t> rows;
  for (const std::int64_t parent : parents) {
    rows.push_back(rows_.at(static_cast<std::size_t>(parent)));
    if (cache_ == nullptr) {
      histories.push_back(histories_.at(static_cast<std::size_t>(parent)));
    }
  }
  rows_ = std::move(rows);
  histories_ = std::move(histories);
}

std::span<const float> Decoder::logits(std::int64_t sequence) {
  const std::int64_t columns = logits_.shape()[1];
  if (!on_host_) {
    const Batch none;
    Context context{.stream = stream_, .mesh = mesh_, .batch = none};
    const Tensor numbers = logits_.dtype() == DType::fp32
                               ? logits_
                               : cast(context, {logits_, nullptr}, DType::fp32).data;
    const auto most = static_cast<std::size_t>(options_.num_sequences * columns);
    if (host_logits_ == nullptr) {
      host_logits_ = std::make_unique<PinnedMemory>(stream_.device().kind(), most * sizeof(float));
    }
    stream_.copy(host_logits_->data(), numbers.data(), numbers.bytes());
    stream_.synchronize();
    on_host_ = true;
  }
  const std::int64_t row = rows_.at(static_cast<std::size_t>(sequence));
  return {static_cast<const float*>(host_logits_->data()) + row * columns,
          static_cast<std::size_t>(model_.options().vocabulary.size)};
}

}  // namespace bloomery
