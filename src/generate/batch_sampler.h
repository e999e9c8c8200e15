// Draws tokens for sequences that join and leave. The device needs nothing of the host for a step:
// on a GPU steps are replays of a CUDA graph that run ahead, and the host reads what they drew
// later.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device/overlap.h"
#include "generate/sequence_decoder.h"
#include "ops/sampling/sampling.h"

namespace bloomery {

// What a sample of a prompt draws with: the same whatever is drawn beside it.
RandomKey draw_key(std::uint64_t seed, std::int64_t prompt, std::int64_t sample);

using TokenBiases = std::vector<std::pair<TokenId, float>>;

class BatchSampler {
 public:
  struct Sequence {
    std::size_t number = 0;  // by which its tokens are known; of those that go on, no other has it
    SamplingOptions sampling;
    RandomKey key = 0;
    std::span<const TokenId> tokens;  // so far
    std::int64_t room = 1;            // the most tokens to draw
    TokenBiases biases = {};          // added to logits
    bool alternatives = false;        // the likeliest tokens come beside the drawn one
    bool forgets = false;  // what is drawn after the first token does not see the tokens so far
    std::int32_t slot = 0, length = 0;  // in the cache, if there is one
    std::int64_t logit_row = 0;         // of the logits that it starts from
  };
  struct Token {
    std::size_t sequence;  // its number
    TokenId token;
    float log_probability;
    std::span<const Drawn> alternatives;  // TopTokens::kMost, or none; until the next next()
  };

  // For as many rows at a time. A sequence ends with its room, or with one of `ends`. The decoder
  // must outlive this object; only this feeds it from now on, but for Decoder::extend() while
  // nothing is in flight.
  BatchSampler(Decoder& decoder, std::span<const TokenId> eos_ids, std::int64_t num_rows);
  ~BatchSampler();
  BatchSampler(const BatchSampler&) = delete;
  BatchSampler& operator=(const BatchSampler&) = delete;

  // Sequences join; their first tokens come from these logits. Nothing may be in flight, and with a
  // decoder that has no cache there is only one such call.
  void add(std::span<const Sequence> sequences, const Tensor& logits);
  // All sequences of a decoder that was fed, in order; it knows their places.
  void add_fed(std::vector<Sequence> sequences);

  // The next token of every sequence that has not ended, or the first ones of those that joined;
  // waits for them. Runs ahead only if allowed to.
  std::span<const Token> next(bool ahead = true);
  // No more tokens of this sequence are wanted. To be called for those that ended by themselves,
  // too.
  void end(std::size_t number);
  bool over() const { return num_going_ == 0; }
  bool in_flight() const { return num_in_flight() > 0; }

 private:
  // Fields of the state, each a row of numbers; the first ones are those of StepRows.
  enum Field {
    kSlots = StepRows::kSlots,
    kLengths = StepRows::kLengths,
    kActive = StepRows::kActive,
    kTokens = StepRows::kTokens,
    kLeft = StepRows::kNumFields,
    kDrawn,
    kLogitRows,
    kNumFields
  };
  // A sequence of the batch, as the host knows it: after the steps that were read.
  struct Row {
    std::size_t sequence;
    std::int64_t logit_row;
    SamplingOptions sampling;
    RandomKey key;
    std::int32_t slot = 0, length = 0, token = 0, left = 0, drawn = 0;
    bool going = true, alternatives = false;
    std::vector<std::int32_t> occurred;  // bits per token; empty without penalties
    std::vector<float> biases;           // by token; empty without
  };
  // What a step's kernels depend on.
  struct Shape {
    std::int64_t rows = 0;
    bool occurred = false, biases = false, alternatives = false;
    auto operator<=>(const Shape&) const = default;
  };
  struct Work {
    std::optional<Graph> graph;
    // Runs a step's kernels with few launches; empty: they are launched one by one.
    std::function<void(const std::function<void()>&)> together;
    int num_eager = 0;  // steps that ran without the graph
  };
  // A step in flight: which rows it draws for, and whether it feeds the tokens they had.
  struct Step {
    std::size_t first = 0;
    bool fed = true;
  };

  Stream& stream() { return own_stream_ ? *own_stream_ : decoder_.stream(); }
  std::int64_t num_in_flight() const { return num_enqueued_ - num_read_; }
  std::int64_t vocabulary() const { return decoder_.model_options().vocabulary.size; }
  Row make_row(const Sequence& sequence) const;
  bool wants_to_shrink() const;
  bool has_work_ahead() const;
  void remove_ended();
  void upload();
  void upload_memory();
  Work& work();
  void enqueue();
  void run_step();
  void step_work(Work& work);
  void draw(const Tensor& logits, const Step& step, bool with_rows);
  void read();
  void note(Row& row, TokenId token) const;

  Decoder& decoder_;
  std::vector<TokenId> ends_;
  std::int64_t capacity_;               // rows at most
  std::unique_ptr<Stream> own_stream_;  // with memory that only steps use; null with `recompute`
  std::optional<OverlapLaunches> overlap_;
  std::int64_t ahead_;  // steps in flight at most
  std::vector<Row> rows_;
  std::size_t num_going_ = 0;
  std::optional<std::size_t> first_new_;  // the row from which on rows wait for their first draw
  Tensor first_logits_;
  bool joined_ = false;  // sequences came later than the first ones
  Shape shape_;
  // At the same places for all steps, so that graphs find them.
  Tensor state_;     // int32 [7, capacity] and the number of the step; see upload()
  Tensor keys_;      // int64 [capacity]
  Tensor sampling_;  // SamplingOptions [capacity]
  Tensor occurred_;  // int32 [capacity, 2, words]; null until needed
  Tensor biases_;    // fp32 [capacity, vocabulary]; null until needed
  Tensor log_probabilities_;
  std::unique_ptr<PinnedMemory> ring_;      // Drawn [ahead, capacity]
  std::unique_ptr<PinnedMemory> top_ring_;  // Drawn [ahead, capacity, TopTokens::kMost], if needed
  std::vector<std::unique_ptr<Event>> written_;
  std::vector<Step> steps_;  // [ahead]
  std::int64_t num_enqueued_ = 0, num_read_ = 0;
  std::map<Shape, Work> works_;
  std::vector<Token> tokens_;
};

}  // namespace bloomery
