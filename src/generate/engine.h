// An engine with continuous batching: sequences join and leave at every step, and prompts are
// computed in chunks between steps (chunked prefill). What a request gets does not depend on the
// others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "generate/batch_sampler.h"
#include "generate/generator.h"
#include "generate/page_pool.h"
#include "generate/prompt_beams.h"
#include "generate/stop_text.h"

namespace bloomery {

struct EngineOptions {
  std::int64_t num_sequences = 16;   // at a time
  std::int64_t capacity = 1024;      // tokens of a sequence, prompt and answer
  std::int64_t cache_tokens = 0;     // of all sequences; 0: as many as they can have
  std::int64_t prefill_chunk = 512;  // tokens of prompts that are computed between two steps
  std::int64_t max_waiting = 64;     // requests
  double drain_seconds = 1e9;        // after close(): what is not done by then fails
};

struct EngineRequest {
  std::vector<TokenId> prompt;
  std::int64_t max_tokens = 16;    // new ones; 0: the prompt is only scored
  std::int64_t prompt_number = 0;  // decides, beside seed and sample, what is drawn
  std::int64_t num_samples = 1;
  SamplingOptions sampling;
  TokenBiases biases;
  std::vector<std::string> stops;  // none is empty
  std::vector<TokenId> eos_ids;
  std::int64_t num_alternatives = 0;  // likeliest tokens beside each, at most TopTokens::kMost
  bool score_prompt = false;          // log-probabilities of the prompt's tokens are wanted
  bool skip_special = false;          // special tokens have no text
  bool mask_prompt = false;           // it decides the first token only (BatchSampler::Sequence)
  // Beam search instead of samples, by so many beams, all of which are told at the end.
  std::int64_t num_beams = 0;
  double length_penalty = 1;

  std::int64_t num_sequences() const { return num_beams > 0 ? num_beams : num_samples; }
};

struct ScoredToken {
  TokenId token = 0;
  float log_probability = 0;        // as the model gives it; NaN: it has none
  std::vector<Drawn> alternatives;  // as many as asked for, best first
};

// Who asked. The engine's thread calls the functions; none may throw or wait.
class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual bool wanted() const = 0;  // false: the engine drops the request soon
  // All tokens of the prompt, if asked for, to keep.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void on_prompt(std::vector<ScoredToken>) {}
  // `text`: what the token makes certain (StopText), perhaps nothing.
  virtual void on_token(std::int64_t sample, const ScoredToken& token, const std::string& text) = 0;
  // `text`: what was held back.
  virtual void on_end(std::int64_t sample, Finish finish, const std::string& text) = 0;
  // The end of a beam search: best first, to keep.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void on_beams(std::vector<Generation>) {}
  // Nothing follows: it was no longer wanted, or the engine failed.
  virtual void on_dropped() = 0;
  virtual void on_failure(const std::string& message) = 0;
};

// For observers, who may be other threads.
struct EngineStatus {
  std::atomic<std::int64_t> running = 0, waiting = 0;  // sequences, requests
  std::atomic<std::int64_t> pages_taken = 0;           // of the cache
  std::atomic<std::int64_t> prompt_tokens = 0, new_tokens = 0, steps = 0, dropped = 0;  // so far
};

class Engine {
 public:
  // Everything referred to must outlive the engine. The model is a decoder without an encoder.
  Engine(const Model& model, Stream& stream, Mesh& mesh, const Tokenizer& tokenizer,
         const EngineOptions& options);

  const EngineOptions& options() const { return options_; }
  const EngineStatus& status() const { return status_; }
  std::int64_t num_pages() const { return num_pages_; }                // of the cache
  std::size_t page_bytes() { return decoder_.cache()->page_bytes(); }  // after the first step

  // From any thread. An Error says what is wrong with a request itself.
  enum class Answer { accepted, busy, closed };
  Answer submit(EngineRequest request, std::shared_ptr<EngineListener> listener);
  struct Submission {
    EngineRequest request;
    std::shared_ptr<EngineListener> listener;
  };
  Answer submit(std::vector<Submission> submissions);  // all or none
  void close();                                        // no more is accepted

  // On the thread that made the engine. One step; false: there was nothing to do. What fails is
  // told to those who asked; only of a rank that failed, which ends all, the RankFailure is thrown.
  bool step();
  // Steps until close() was called and all that was accepted is done.
  void run();

 private:
  struct Request {
    EngineRequest request;
    std::shared_ptr<EngineListener> listener;
    std::vector<std::int32_t> slots;  // of its samples; the prompt is computed in the first
    std::vector<std::vector<std::int32_t>> pages;  // of their tokens, all that may come
    std::int64_t computed = 0;                     // tokens of the prompt
    std::vector<ScoredToken> scores;               // of those
    std::int64_t num_going = 0;                    // samples
    std::unique_ptr<PromptBeams> beams;            // null: samples, or the prompt is not computed
    std::vector<std::int32_t> beam_slots;          // of the running beams
  };
  using RequestIterator = std::list<Request>::iterator;
  struct Running {
    RequestIterator entry;
    std::int64_t sample = 0, count = 0;  // tokens drawn
    std::int32_t slot = 0;
    StopText text;
  };

  void check_request(const EngineRequest& request) const;
  void accept();
  void give_room(Request& entry);
  void drop_unwanted();
  bool prompt_waits() const;
  void compute_prompts();
  std::vector<RequestIterator> choose_pieces(std::vector<Decoder::Piece>& pieces);
  void score(Request& entry, std::span<const float> logits, std::int64_t columns,
             std::span<const TokenId> piece);
  void start(RequestIterator entry, const Tensor& logits, std::int64_t logit_row,
             std::vector<BatchSampler::Sequence>& joining);
  void start_beams(RequestIterator entry, const Tensor& logits);
  bool beams_run() const;
  void step_beams();
  void advance_beams(RequestIterator entry, const Tensor& logits);
  void take(const BatchSampler::Token& drawn);
  void end(std::size_t number);
  void release(RequestIterator entry);
  void fail(const std::string& message);
  void fail_waiting(const std::string& message);
  void show_status();
  bool drained_long_enough();
  void restart();

  const Tokenizer& tokenizer_;
  Stream& stream_;
  const std::int64_t vocabulary_;
  EngineOptions options_;
  const std::int64_t num_pages_;
  Decoder decoder_;
  std::unique_ptr<BatchSampler> drawn_;

  std::mutex mutex_;  // of what other threads reach
  std::condition_variable arrived_;
  std::deque<Request> waiting_;
  std::chrono::steady_clock::time_point next_sweep_;  // of those
  bool closed_ = false;
  std::chrono::steady_clock::time_point closed_at_;

  std::list<Request> requests_;  // accepted; in their order
  std::map<std::size_t, Running> running_;
  std::size_t next_number_ = 0;
  std::vector<std::int32_t> free_slots_;
  PagePool pages_;
  EngineStatus status_;
};

}  // namespace bloomery
