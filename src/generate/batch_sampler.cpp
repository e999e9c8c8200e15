#include "generate/batch_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/round_up.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

constexpr std::int64_t kAhead = 8;

}  // namespace

RandomKey draw_key(std::uint64_t seed, std::int64_t prompt, std::int64_t sample) {
  return random_key(seed, concat("generate/prompt ", prompt, "/sample ", sample));
}

BatchSampler::BatchSampler(Decoder& decoder, std::span<const TokenId> eos_ids,
                           std::int64_t num_rows)
    : decoder_(decoder),
      ends_(eos_ids.begin(), eos_ids.end()),
      capacity_(num_rows),
      ahead_(decoder.cache() != nullptr && decoder.stream().on_cuda() ? kAhead : 1),
      steps_(static_cast<std::size_t>(ahead_)) {
  Stream& own = decoder.stream();
  Device& device = own.device();
  ring_ = std::make_unique<PinnedMemory>(
      device.kind(), static_cast<std::size_t>(ahead_ * num_rows) * sizeof(Drawn));
  for (std::int64_t i = 0; i < ahead_; ++i) {
    written_.push_back(std::make_unique<Event>(device));
  }
  if (decoder.cache() != nullptr) {
    own_stream_ = std::make_unique<Stream>(device);
    if (!decoder.is_divided()) {
      overlap_.emplace(*own_stream_);
    }
  }
  state_ = Tensor::empty(own, DType::int32, {kNumFields * num_rows + 1});
  keys_ = Tensor::empty(own, DType::int64, {num_rows});
  sampling_ = Tensor::empty(own, DType::uint8,
                            {num_rows * static_cast<std::int64_t>(sizeof(SamplingOptions))});
  log_probabilities_ = Tensor::empty(own, DType::fp32, {num_rows});
}

BatchSampler::~BatchSampler() {
  if (own_stream_) {
    own_stream_->synchronize();  // steps that ran ahead
  }
}

BatchSampler::Row BatchSampler::make_row(const Sequence& sequence) const {
  Row row{.sequence = sequence.number,
          .logit_row = sequence.logit_row,
          .sampling = sequence.sampling,
          .key = sequence.key,
          .slot = sequence.slot,
          .length = sequence.forgets ? 0 : sequence.length,
          .token = sequence.tokens.empty() ? 0 : sequence.tokens.back(),
          .left = static_cast<std::int32_t>(std::min<std::int64_t>(sequence.room, INT32_MAX)),
          .alternatives = sequence.alternatives};
  if (sequence.sampling.repetition_penalty != 1 || sequence.sampling.has_biases()) {
    row.occurred.resize(static_cast<std::size_t>(2 * occurred_words(vocabulary())));
    for (const TokenId token : sequence.tokens) {
      row.occurred[static_cast<std::size_t>(token) / 32] |=
          static_cast<std::int32_t>(1u << token % 32);
    }
  }
  if (!sequence.biases.empty() || sequence.sampling.has_biases()) {
    row.biases.resize(static_cast<std::size_t>(vocabulary()));
    for (const auto& [token, bias] : sequence.biases) {
      row.biases[static_cast<std::size_t>(token)] += bias;
    }
  }
  return row;
}

void BatchSampler::add_fed(std::vector<Sequence> sequences) {
  Cache* const cache = decoder_.cache();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    sequences[i].logit_row = decoder_.rows().at(i);
    if (cache != nullptr) {
      sequences[i].slot = cache->slot(number);
      sequences[i].length = static_cast<std::int32_t>(cache->length(number));
    } else if (sequences[i].forgets) {
      decoder_.forget(number);
    }
  }
  add(sequences, decoder_.device_logits());
}

void BatchSampler::add(std::span<const Sequence> sequences, const Tensor& logits) {
  check(!in_flight() && !first_new_, "generation: sequences join between steps");
  check(static_cast<std::int64_t>(num_going_ + sequences.size()) <= capacity_,
        "generation: ", num_going_ + sequences.size(), " sequences, but there is room for ",
        capacity_);
  joined_ = num_enqueued_ > 0;
  remove_ended();
  first_new_ = rows_.size();
  first_logits_ = logits;
  for (const Sequence& sequence : sequences) {
    rows_.push_back(make_row(sequence));
  }
  num_going_ += sequences.size();
  upload();
}

// What the host knows of the rows, to the device. Where sequences come and go, steps are of a few
// sizes only, since each size has its graph: rows at the end are not active.
void BatchSampler::upload() {
  const auto n = static_cast<std::size_t>(capacity_);
  const auto count = static_cast<std::int64_t>(rows_.size());
  const bool rounded = joined_ && ahead_ > 1 && count > 8;
  shape_ = {.rows = rounded ? std::min(round_up(count, std::int64_t{8}), capacity_) : count};
  std::vector<std::int32_t> state(kNumFields * n + 1);
  std::vector<std::int64_t> keys(n);
  std::vector<SamplingOptions> sampling(n);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    state[kSlots * n + i] = row.slot;
    state[kLengths * n + i] = row.length;
    state[kActive * n + i] = 1;
    state[kTokens * n + i] = row.token;
    state[kLeft * n + i] = row.left;
    state[kDrawn * n + i] = row.drawn;
    state[kLogitRows * n + i] = static_cast<std::int32_t>(row.logit_row);
    keys[i] = static_cast<std::int64_t>(row.key);
    sampling[i] = row.sampling;
    shape_.occurred = shape_.occurred || !row.occurred.empty();
    shape_.biases = shape_.biases || !row.biases.empty();
    shape_.alternatives = shape_.alternatives || row.alternatives;
  }
  state.back() = static_cast<std::int32_t>(num_enqueued_ % ahead_);
  Stream& stream = decoder_.stream();
  stream.synchronize();  // as Tensor::from_host
  stream.copy(state_.data(), state.data(), state_.bytes());
  stream.copy(keys_.data(), keys.data(), keys_.bytes());
  stream.copy(sampling_.data(), sampling.data(), sampling_.bytes());
  upload_memory();
  stream.synchronize();
}

// Bits and biases of those rows that have them, zeros for the others.
void BatchSampler::upload_memory() {
  Stream& stream = decoder_.stream();
  const std::int64_t words = 2 * occurred_words(vocabulary());
  if (shape_.occurred && !occurred_) {
    occurred_ = Tensor::empty(stream, DType::int32, {capacity_, words});
  }
  if (shape_.biases && !biases_) {
    biases_ = Tensor::empty(stream, DType::fp32, {capacity_, vocabulary()});
  }
  if (shape_.alternatives && !top_ring_) {
    top_ring_ = std::make_unique<PinnedMemory>(
        stream.device().kind(),
        static_cast<std::size_t>(ahead_ * capacity_) * TopTokens::kMost * sizeof(Drawn));
  }
  const auto place = [&](const Tensor& all, std::size_t i, const auto& numbers) {
    const std::size_t bytes = all.bytes() / static_cast<std::size_t>(capacity_);
    char* const to = static_cast<char*>(all.data()) + i * bytes;
    if (numbers.empty()) {
      stream.fill(to, 0, bytes);
    } else {
      stream.copy(to, numbers.data(), bytes);
    }
  };
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (shape_.occurred) {
      place(occurred_, i, rows_[i].occurred);
    }
    if (shape_.biases) {
      place(biases_, i, rows_[i].biases);
    }
  }
}

// A graph is made for a number of rows, so that those that ended stay until half of them have.
bool BatchSampler::wants_to_shrink() const {
  return num_going_ < rows_.size() && (ahead_ == 1 || num_going_ <= rows_.size() / 2);
}

void BatchSampler::remove_ended() {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].going) {
      kept.push_back(static_cast<std::int64_t>(i));
    }
  }
  const bool removes = kept.size() < rows_.size();
  std::erase_if(rows_, [](const Row& row) { return !row.going; });
  if (decoder_.cache() == nullptr && removes) {
    decoder_.select(kept);
  }
}

bool BatchSampler::has_work_ahead() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const Row& row) { return row.going && row.left > num_in_flight(); });
}

std::span<const BatchSampler::Token> BatchSampler::next(bool ahead) {
  check(!over(), "generation: all sequences have ended");
  if (!in_flight() && !first_new_ && wants_to_shrink()) {
    remove_ended();
    upload();
  }
  const std::int64_t most = !ahead || wants_to_shrink() ? 1 : ahead_;
  while (!in_flight() || (num_in_flight() < most && has_work_ahead())) {
    enqueue();
  }
  read();
  return tokens_;
}

void BatchSampler::end(std::size_t number) {
  for (Row& row : rows_) {
    if (row.sequence == number && row.going) {
      row.going = false;
      --num_going_;
    }
  }
  if (over()) {  // of the steps that ran ahead nothing is wanted
    stream().synchronize();
    num_read_ = num_enqueued_;
  }
}

// The oldest step that was not read.
void BatchSampler::read() {
  const std::int64_t place = num_read_ % ahead_;
  written_[static_cast<std::size_t>(place)]->synchronize();
  const Step& step = steps_[static_cast<std::size_t>(place)];
  const auto* const drawn = static_cast<const Drawn*>(ring_->data()) + place * capacity_;
  const auto* const best = top_ring_ ? static_cast<const Drawn*>(top_ring_->data()) +
                                           place * capacity_ * TopTokens::kMost
                                     : nullptr;
  tokens_.clear();
  for (std::size_t i = step.first; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.going) {
      continue;
    }
    const Drawn& found = drawn[i];
    check(found.token >= 0, "generation: sequence ", row.sequence, " had ended");
    if (std::isnan(found.log_probability)) {
      fail_not_finite();
    }
    row.length += step.fed ? 1 : 0;
    row.left -= 1;
    note(row, found.token);
    tokens_.push_back({row.sequence, found.token, found.log_probability, {}});
    if (row.alternatives) {
      tokens_.back().alternatives = {best + i * TopTokens::kMost, TopTokens::kMost};
    }
  }
  ++num_read_;
}

// As SampleTokens does on the device.
void BatchSampler::note(Row& row, TokenId token) const {
  row.token = token;
  row.drawn += 1;
  if (row.occurred.empty()) {
    return;
  }
  const std::size_t word = static_cast<std::size_t>(token) / 32, words = row.occurred.size() / 2;
  const auto bit = static_cast<std::int32_t>(1u << token % 32);
  if (!row.biases.empty()) {
    row.biases[static_cast<std::size_t>(token)] -=
        drawn_penalty(row.sampling.presence_penalty, row.sampling.frequency_penalty,
                      (row.occurred[words + word] & bit) == 0);
  }
  row.occurred[word] |= bit;
  row.occurred[words + word] |= bit;
}

}  // namespace bloomery
