#include "generate/sequence_decoder.h"

#include <algorithm>
#include <numeric>

#include "ops/arithmetic/arithmetic.h"
#include "ops/attention/attention_settings.h"
#include "parallel/head_loss.h"

namespace bloomery {
namespace {

using Kind = DecoderCall::Kind;

// Numbers of the decoders that a rank makes.
struct DecoderNumbers {
  explicit DecoderNumbers(Device&) {}
  std::int64_t next = 0;
};

}  // namespace

StepRows StepRows::empty(Stream& stream, std::int64_t room) {
  return {Tensor::empty(stream, DType::int32, {kNumFields * room}), room};
}

// Where this rank fails in the middle, the others wait for it.
template <class Work>
auto Decoder::together(DecoderCall call, const Work& work) {
  call.decoder = number_;
  tell(mesh_, call);
  try {
    return work();
  } catch (const RankFailure&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_divided() || mesh_.coordinate(Axis::tensor) != 0) {
      throw;
    }
    mesh_.host().abort(error.what());
    throw RankFailure(error.what(), 0, false);
  }
}

Decoder::Decoder(const Model& model, Stream& stream, Mesh& mesh, const DecoderOptions& options)
    : model_(model),
      stream_(stream),
      mesh_(mesh),
      options_(options),
      number_(stream.device().service<DecoderNumbers>().next++) {
  together({.kind = Kind::make,
            .numbers = {options.num_sequences, options.capacity, options.recompute ? 1 : 0,
                        options.num_pages}},
           [&] {
             stream.device().service<AttentionSettings>().varied_lengths = true;
             if (!options.recompute) {
               cache_ = std::make_unique<Cache>(stream, options.num_sequences, options.capacity,
                                                options.num_pages);
             }
           });
}

Decoder::~Decoder() {
  try {
    tell(mesh_, {.kind = Kind::end, .decoder = number_});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): other ranks have ended
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
  together({.kind = Kind::read, .tokens = texts}, [&] { texts_ = texts; });
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
  return logits_of_all_ranks(stream, mesh_, model_.forward(context).stream.data);
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
  together({.kind = Kind::feed, .tokens = tokens}, [&] { feed_here(tokens); });
}

void Decoder::feed_here(const std::vector<std::vector<TokenId>>& tokens) {
  std::vector<std::int64_t> starts(tokens.size(), 0);
  if (cache_ == nullptr) {
    histories_.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      histories_[i].insert(histories_[i].end(), tokens[i].begin(), tokens[i].end());
    }
    compute(histories_, starts);
    return;
  }
  if (rows_.empty()) {
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
  DecoderCall call{.kind = Kind::extend, .numbers = {every_token ? 1 : 0}};
  std::vector<std::int64_t> starts;
  std::vector<Cache::Piece> places;
  for (const Piece& piece : pieces) {
    call.tokens.push_back(piece.tokens);
    call.numbers.insert(call.numbers.end(), {piece.slot, piece.length});
    starts.push_back(piece.length);
    places.push_back({piece.slot, piece.length, static_cast<std::int32_t>(piece.tokens.size())});
  }
  return together(call, [&] {
    Batch batch = make_batch(call.tokens, starts);
    if (every_token) {
      batch.output_rows = {};
    }
    cache_->begin(places);
    return forward(stream_, batch);
  });
}

Tensor Decoder::step(Stream& stream, const StepRows& rows, std::int64_t count) {
  return together({.kind = Kind::step, .numbers = {count, rows.room}}, [&] {
    mesh_.axis(Axis::tensor).broadcast(rows.numbers, 0, stream);
    const auto field = [&](StepRows::Field which) {
      return rows.numbers.range(which * rows.room, {count});
    };
    const auto numbers = [&](StepRows::Field which) {
      return static_cast<const std::int32_t*>(field(which).data());
    };
    Batch batch;
    batch.num_sequences = count;
    batch.length = 1;
    batch.tokens = field(StepRows::kTokens);
    batch.positions = field(StepRows::kLengths);
    cache_->begin(
        {numbers(StepRows::kSlots), numbers(StepRows::kLengths), numbers(StepRows::kActive)},
        count);
    return forward(stream, batch);
  });
}

void Decoder::forget(std::int64_t sequence) {
  together({.kind = Kind::forget, .numbers = {sequence}},
           [&] { histories_.at(static_cast<std::size_t>(sequence)).clear(); });
}

void Decoder::set_pages(std::int32_t slot, std::span<const std::int32_t> pages) {
  DecoderCall call{.kind = Kind::set_pages, .numbers = {slot}};
  call.numbers.insert(call.numbers.end(), pages.begin(), pages.end());
  together(call, [&] { cache_->set_pages(slot, pages); });
}

void Decoder::copy_slot(std::int32_t from, std::int32_t to, std::int32_t length) {
  together({.kind = Kind::copy_slot, .numbers = {from, to, length}},
           [&] { cache_->copy_slot(from, to, length); });
}

void Decoder::select(std::span<const std::int64_t> parents) {
  together({.kind = Kind::select, .numbers = {parents.begin(), parents.end()}},
           [&] { select_here(parents); });
}

void Decoder::select_here(std::span<const std::int64_t> parents) {
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

bool Decoder::holds_weights_in(QuantizedFormat format) const {
  return std::ranges::any_of(model_.parameters(), [&](const Parameter* each) {
    return each->codes != nullptr && each->codes->format == format;
  });
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
