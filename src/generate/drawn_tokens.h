// Tokens drawn for the sequences of a decoder. The device needs nothing of the host for a step: on
// a GPU steps are replays of a graph that run ahead, and the host reads behind what they drew.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/overlap.h"
#include "generate/decoder.h"
#include "ops/sampling/sampling.h"

namespace bloomery {

class DrawnTokens {
 public:
  struct Sequence {
    std::int64_t prompt = 0, sample = 0;  // their numbers decide what is drawn
    std::span<const TokenId> tokens;      // of the prompt
    std::int64_t room = 1;                // the most tokens to draw
  };
  struct Token {
    std::size_t sequence;  // its number
    TokenId token;
    float log_probability;
  };

  // The decoder was fed the prompts and has one sequence for each of these, in order; from now on
  // it belongs to this object. A sequence ends with its room, or with one of `ends`.
  DrawnTokens(Decoder& decoder, const SamplingOptions& options, std::span<const TokenId> ends,
              std::span<const Sequence> sequences);
  ~DrawnTokens();
  DrawnTokens(const DrawnTokens&) = delete;
  DrawnTokens& operator=(const DrawnTokens&) = delete;

  // The next token of every sequence that has not ended, in order of the sequences; waits for them.
  std::span<const Token> next();
  // No more tokens of this sequence are wanted. To be called for those that ended by themselves,
  // too.
  void end(std::size_t sequence);
  bool over() const { return num_going_ == 0; }

 private:
  // A sequence of the batch, as the host knows it: after the steps that were read.
  struct Row {
    std::size_t sequence;
    std::int64_t decoder_row;
    RandomKey key;
    std::int32_t slot = 0, length = 0, token = 0, left = 0, drawn = 0;
    bool going = true;
    std::vector<std::int32_t> occurred;  // a bit per token; empty without penalty
  };

  Stream& stream() { return own_stream_ ? *own_stream_ : decoder_.stream(); }
  std::int64_t num_rows() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t in_flight() const { return num_enqueued_ - num_read_; }
  bool wants_to_shrink() const;
  bool has_work_ahead() const;
  void upload();
  void shrink();
  void enqueue();
  void run_step();
  void step_work();
  void draw(const Tensor& logits, bool with_rows);
  void read();

  Decoder& decoder_;
  SamplingOptions options_;
  std::vector<TokenId> ends_;
  std::unique_ptr<Stream> own_stream_;  // with memory that only steps use; null with `recompute`
  std::optional<OverlapLaunches> overlap_;
  std::int64_t ahead_;  // steps in flight at most
  std::vector<Row> rows_;
  std::size_t num_going_;
  Tensor state_;     // int32 [7, rows] and the number of the step; see upload()
  Tensor keys_;      // int64 [rows]
  Tensor occurred_;  // int32 [rows, words]
  Tensor log_probabilities_;
  std::unique_ptr<PinnedMemory> ring_;  // Drawn [ahead, ring_rows]
  std::int64_t ring_rows_ = 0;          // as many as rows at first
  std::vector<std::unique_ptr<Event>> written_;
  std::int64_t num_enqueued_ = 0, num_read_ = 0;
  std::optional<Graph> graph_;
  int num_eager_ = 0;  // steps of these rows that ran without it
  std::vector<Token> tokens_;
};

}  // namespace bloomery
