#include "generate/drawn_tokens.h"

#include <algorithm>
#include <cmath>

#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

constexpr std::int64_t kAhead = 8;

// Fields of the state, each a row of numbers.
enum Field { kSlots, kLengths, kActive, kTokens, kLeft, kDrawn, kLogitRows, kNumFields };

}  // namespace

DrawnTokens::DrawnTokens(Decoder& decoder, const SamplingOptions& options,
                         std::span<const TokenId> ends, std::span<const Sequence> sequences)
    : decoder_(decoder),
      options_(options),
      ends_(ends.begin(), ends.end()),
      ahead_(decoder.cache() != nullptr && decoder.stream().on_cuda() ? kAhead : 1),
      num_going_(sequences.size()) {
  const std::int64_t vocabulary = decoder.model_options().vocabulary.size;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    Row row{.sequence = i,
            .decoder_row = decoder.rows().at(i),
            .key = random_key(options.seed, concat("generate/prompt ", sequence.prompt, "/sample ",
                                                   sequence.sample)),
            .left = static_cast<std::int32_t>(std::min<std::int64_t>(sequence.room, INT32_MAX))};
    if (Cache* const cache = decoder.cache()) {
      row.slot = cache->slot(static_cast<std::int64_t>(i));
      row.length = static_cast<std::int32_t>(cache->length(static_cast<std::int64_t>(i)));
    }
    if (options.repetition_penalty != 1) {
      row.occurred.resize(static_cast<std::size_t>(occurred_words(vocabulary)));
      for (const TokenId token : sequence.tokens) {
        row.occurred[static_cast<std::size_t>(token) / 32] |=
            static_cast<std::int32_t>(1u << token % 32);
      }
    }
    rows_.push_back(std::move(row));
  }
  Device& device = decoder.stream().device();
  ring_rows_ = num_rows();
  ring_ = std::make_unique<PinnedMemory>(
      device.kind(), static_cast<std::size_t>(ahead_ * num_rows()) * sizeof(Drawn));
  for (std::int64_t i = 0; i < ahead_; ++i) {
    written_.push_back(std::make_unique<Event>(device));
  }
  if (decoder.cache() != nullptr) {
    own_stream_ = std::make_unique<Stream>(device);
    overlap_.emplace(*own_stream_);
  }
  upload();
}

DrawnTokens::~DrawnTokens() {
  if (own_stream_) {
    own_stream_->synchronize();  // steps that ran ahead
  }
}

// What the host knows of the rows, to the device.
void DrawnTokens::upload() {
  const auto n = rows_.size();
  std::vector<std::int32_t> state(kNumFields * n + 1), occurred;
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < n; ++i) {
    const Row& row = rows_[i];
    state[kSlots * n + i] = row.slot;
    state[kLengths * n + i] = row.length;
    state[kActive * n + i] = 1;
    state[kTokens * n + i] = row.token;
    state[kLeft * n + i] = row.left;
    state[kDrawn * n + i] = row.drawn;
    state[kLogitRows * n + i] = static_cast<std::int32_t>(row.decoder_row);
    keys.push_back(static_cast<std::int64_t>(row.key));
    occurred.insert(occurred.end(), row.occurred.begin(), row.occurred.end());
  }
  state.back() = static_cast<std::int32_t>(num_enqueued_ % ahead_);
  Stream& stream = decoder_.stream();
  state_ = Tensor::from_host(stream, state, {static_cast<std::int64_t>(state.size())});
  keys_ = Tensor::from_host(stream, keys, {num_rows()});
  occurred_ = Tensor::from_host(stream, occurred, {static_cast<std::int64_t>(occurred.size())});
  log_probabilities_ = Tensor::empty(stream, DType::fp32, {num_rows()});
  stream.synchronize();
}

// A graph is made for a number of rows, so that those that ended stay until half of them have.
bool DrawnTokens::wants_to_shrink() const {
  return num_going_ < rows_.size() && (ahead_ == 1 || num_going_ <= rows_.size() / 2);
}

void DrawnTokens::shrink() {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].going) {
      kept.push_back(static_cast<std::int64_t>(i));
    }
  }
  std::erase_if(rows_, [](const Row& row) { return !row.going; });
  if (decoder_.cache() == nullptr) {
    decoder_.select(kept);
  }
  upload();
  graph_.reset();
  num_eager_ = 0;
}

bool DrawnTokens::has_work_ahead() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const Row& row) { return row.going && row.left > in_flight(); });
}

std::span<const DrawnTokens::Token> DrawnTokens::next() {
  check(!over(), "generation: all sequences have ended");
  if (in_flight() == 0 && wants_to_shrink()) {
    shrink();
  }
  const std::int64_t ahead = wants_to_shrink() ? 1 : ahead_;
  while (in_flight() == 0 || (in_flight() < ahead && has_work_ahead())) {
    enqueue();
  }
  read();
  return tokens_;
}

void DrawnTokens::end(std::size_t sequence) {
  for (Row& row : rows_) {
    if (row.sequence == sequence && row.going) {
      row.going = false;
      --num_going_;
    }
  }
}

void DrawnTokens::enqueue() {
  if (num_enqueued_ == 0) {
    draw(decoder_.device_logits(), true);
  } else if (decoder_.cache() == nullptr) {
    std::vector<std::vector<TokenId>> tokens;
    for (const Row& row : rows_) {
      tokens.push_back({row.token});
    }
    decoder_.feed(tokens);
    draw(decoder_.device_logits(), false);
  } else {
    run_step();
  }
  written_[static_cast<std::size_t>(num_enqueued_ % ahead_)]->record(stream());
  ++num_enqueued_;
}

// The first steps make the plans of products and get the memory that a captured one may not ask
// for.
void DrawnTokens::run_step() {
  constexpr int kWarmUp = 2;
  if (!stream().on_cuda() || num_eager_ < kWarmUp) {
    step_work();
    ++num_eager_;
    return;
  }
  if (!graph_) {
    graph_.emplace().capture(stream(), [this] { step_work(); });
  }
  graph_->replay(stream());
}

void DrawnTokens::step_work() {
  const std::int64_t n = num_rows();
  const auto field = [&](Field which) { return state_.range(which * n, {n}); };
  const auto numbers = [&](Field which) {
    return static_cast<const std::int32_t*>(field(which).data());
  };
  Batch batch;
  batch.num_sequences = n;
  batch.length = 1;
  batch.tokens = field(kTokens);
  batch.positions = field(kLengths);
  decoder_.cache()->begin({numbers(kSlots), numbers(kLengths), numbers(kActive)}, n);
  draw(decoder_.forward(stream(), batch), false);
}

// `with_rows`: sequences may share rows of the logits.
void DrawnTokens::draw(const Tensor& logits, bool with_rows) {
  const std::int64_t n = num_rows();
  auto* const state = static_cast<std::int32_t*>(state_.data());
  auto* const logs = static_cast<float*>(log_probabilities_.data());
  launch(stream(), SampleTokens{.options = options_,
                                .count = n,
                                .logits = logits,
                                .vocabulary = decoder_.model_options().vocabulary.size,
                                .logit_rows = with_rows ? state + kLogitRows * n : nullptr,
                                .active = state + kActive * n,
                                .keys = static_cast<const RandomKey*>(keys_.data()),
                                .drawn = state + kDrawn * n,
                                .occurred = options_.repetition_penalty == 1
                                                ? nullptr
                                                : static_cast<std::uint32_t*>(occurred_.data()),
                                .tokens = state + kTokens * n,
                                .log_probabilities = logs});
  AdvanceRows advance{.count = n,
                      .fed = num_enqueued_ > 0,
                      .tokens = state + kTokens * n,
                      .log_probabilities = logs,
                      .lengths = state + kLengths * n,
                      .active = state + kActive * n,
                      .left = state + kLeft * n,
                      .step = state + kNumFields * n,
                      .ring = static_cast<Drawn*>(ring_->data()),
                      .ring_steps = ahead_,
                      .ring_rows = ring_rows_};
  for (const TokenId end : ends_) {
    if (advance.num_ends < AdvanceRows::kMaxEnds) {
      advance.ends[advance.num_ends++] = end;
    }
  }
  launch(stream(), advance);
}

// The oldest step that was not read.
void DrawnTokens::read() {
  const std::int64_t place = num_read_ % ahead_;
  written_[static_cast<std::size_t>(place)]->synchronize();
  const auto* const drawn = static_cast<const Drawn*>(ring_->data()) + place * ring_rows_;
  tokens_.clear();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.going) {
      continue;
    }
    const Drawn& found = drawn[i];
    check(found.token >= 0, "generation: sequence ", row.sequence, " had ended");
    if (std::isnan(found.log_probability)) {
      fail_not_finite();
    }
    row.length += num_read_ > 0 ? 1 : 0;
    row.token = found.token;
    row.drawn += 1;
    row.left -= 1;
    if (!row.occurred.empty()) {
      row.occurred[static_cast<std::size_t>(found.token) / 32] |=
          static_cast<std::int32_t>(1u << found.token % 32);
    }
    tokens_.push_back({row.sequence, found.token, found.log_probability});
  }
  ++num_read_;
}

}  // namespace bloomery
