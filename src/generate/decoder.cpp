#include "generate/decoder.h"

#include <algorithm>
#include <numeric>

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

Decoder::Decoder(const Model& model, Stream& stream, Mesh& mesh, const DecoderOptions& options)
    : model_(model), stream_(stream), mesh_(mesh), options_(options) {
  check(mesh.degree(Axis::tensor) == 1, "generation runs on one rank, not on ", mesh.place());
  if (!options.recompute) {
    cache_ =
        std::make_unique<Cache>(stream, options.num_sequences, options.capacity, options.num_pages);
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

void Decoder::read(const std::vector<std::vector<TokenId>>& texts) {
  check(rows_.empty() && Model::decoder_begin(model_.options()) > 0,
        "generation: texts are read before the first tokens, by a model with an encoder");
  texts_ = texts;
}

std::vector<std::int32_t> Decoder::text_lengths() const {
  std::vector<std::int32_t> lengths;
  for (const auto& text : texts_) {
    lengths.push_back(static_cast<std::int32_t>(text.size()));
  }
  return lengths;
}

// The texts, padded at their ends, of which padding is not seen.
void Decoder::add_encoder(Batch& batch) const {
  auto encoder =
      std::make_shared<Batch>(make_batch(texts_, std::vector<std::int64_t>(texts_.size())));
  encoder->output_rows = {};
  const auto ends_for = [&](std::int64_t times) {
    std::vector<std::int32_t> ends;
    for (const std::int32_t length : text_lengths()) {
      ends.insert(ends.end(), static_cast<std::size_t>(times), length);
    }
    return Tensor::from_host(stream_, ends, {static_cast<std::int64_t>(ends.size())});
  };
  encoder->key_begin = Tensor::zeros(stream_, DType::int32, {encoder->num_tokens()});
  encoder->key_end = ends_for(encoder->length);
  batch.encoder_key_begin = Tensor::zeros(stream_, DType::int32, {batch.num_tokens()});
  batch.encoder_key_end = ends_for(batch.length);
  batch.encoder = std::move(encoder);
}

Tensor Decoder::forward(Stream& stream, const Batch& batch) const {
  Context context{.stream = stream, .mesh = mesh_, .batch = batch, .cache = cache_.get()};
  return model_.forward(context).stream.data;
}

void Decoder::compute(const std::vector<std::vector<TokenId>>& tokens,
                      const std::vector<std::int64_t>& starts) {
  logits_ = {};
  Batch batch = make_batch(tokens, starts);
  if (!texts_.empty() && (cache_ == nullptr || cache_->was_empty())) {
    add_encoder(batch);
    if (cache_ != nullptr) {
      cache_->set_texts(text_lengths(), batch.encoder->length);
    }
  }
  logits_ = forward(stream_, batch);
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
  check(!first || (texts_.empty() ? Model::decoder_begin(model_.options()) == 0
                                  : texts_.size() == tokens.size()),
        "generation: ", texts_.size(), " texts for ", tokens.size(), " sequences");
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

Tensor Decoder::extend(std::span<const Piece> pieces, bool every_token) {
  check(cache_ != nullptr && rows_.empty(), "generation: this decoder is fed");
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::int64_t> starts;
  std::vector<Cache::Piece> places;
  for (const Piece& piece : pieces) {
    tokens.push_back(piece.tokens);
    starts.push_back(piece.length);
    places.push_back({piece.slot, piece.length, static_cast<std::int32_t>(piece.tokens.size())});
  }
  Batch batch = make_batch(tokens, starts);
  if (every_token) {
    batch.output_rows = {};
  }
  cache_->begin(places);
  return forward(stream_, batch);
}

void Decoder::select(std::span<const std::int64_t> parents) {
  if (cache_ != nullptr) {
    cache_->select(parents);
  }
  std::vector<std::vector<TokenId>> histories, texts;
  std::vector<std::int64_t> rows;
  for (const std::int64_t parent : parents) {
    rows.push_back(rows_.at(static_cast<std::size_t>(parent)));
    if (cache_ == nullptr) {
      histories.push_back(histories_.at(static_cast<std::size_t>(parent)));
    }
    if (cache_ == nullptr && !texts_.empty()) {
      texts.push_back(texts_.at(static_cast<std::size_t>(parent)));
    }
  }
  rows_ = std::move(rows);
  histories_ = std::move(histories);
  texts_ = std::move(texts);
}

Tensor Decoder::in_fp32(const Tensor& logits) {
  const Batch none;
  Context context{.stream = stream_, .mesh = mesh_, .batch = none};
  return logits.dtype() == DType::fp32 ? logits
                                       : cast(context, {logits, nullptr}, DType::fp32).data;
}

std::vector<float> Decoder::numbers(const Tensor& logits) {
  return in_fp32(logits).to_host<float>(stream_);
}

std::span<const float> Decoder::logits(std::int64_t sequence) {
  const std::int64_t columns = logits_.shape()[1];
  if (!on_host_) {
    const Tensor numbers = in_fp32(logits_);
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
