#include "train/report/megatron_scalars.h"

namespace bloomery {
namespace {

struct Position {
  std::int64_t iteration, samples, tokens;
};

// Adds a scalar over each of the three axes.
class ThreeAxes {
 public:
  ThreeAxes(EventFile& events, const Position& at, double now)
      : events_(events), at_(at), now_(now) {}
  void add(const std::string& tag, double value) {
    events_.add_scalar(tag, value, at_.iteration, now_);
    events_.add_scalar(tag + " vs samples", value, at_.samples, now_);
    events_.add_scalar(tag + " vs tokens", value, at_.tokens, now_);
  }

 private:
  EventFile& events_;
  Position at_;
  double now_;
};

void add_positions(EventFile& events, const Position& at, double now) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  events.add_scalar("steps-vs-samples/y=steps,x=samples", real(at.iteration), at.samples, now);
  events.add_scalar("steps-vs-samples/y=samples,x=steps", real(at.samples), at.iteration, now);
  events.add_scalar("steps-vs-tokens/y=steps,x=tokens", real(at.iteration), at.tokens, now);
  events.add_scalar("steps-vs-tokens/y=tokens,x=steps", real(at.tokens), at.iteration, now);
}

}  // namespace

void add_iteration_scalars(EventFile& events, const IterationReport& r, const ScalarChoice& choice,
                           std::int64_t world_size, double now) {
  const Position at{r.iteration, r.consumed_samples, r.consumed_tokens};
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  add_positions(events, at, now);
  ThreeAxes axes(events, at, now);
  if (choice.learning_rate) axes.add("learning-rate/learning-rate", r.learning_rate);
  if (choice.batch_size) axes.add("batch-size/batch-size", real(r.global_batch));
  for (const auto& [name, value] : r.losses) {
    axes.add((name.find('/') == std::string::npos ? "lm-loss-training/" : "") + name, value);
  }
  if (choice.loss_scale && r.loss_scale) axes.add("loss-scale/loss-scale", *r.loss_scale);
  if (choice.world_size) axes.add("world-size/world-size", real(world_size));
  if (r.grad_norm) axes.add("grad-norm/grad-norm", *r.grad_norm);
  if (r.num_zeros) axes.add("num-zeros/num-zeros", *r.num_zeros);
  if (r.params_norm) axes.add("params-norm/params-norm", *r.params_norm);
  axes.add("seqlen/actual_seq_length", real(r.seq_length));
  if (r.curriculum_seqlen) axes.add("seqlen/curriculum_seqlen", real(*r.curriculum_seqlen));
  if (r.random_ltd_length) {
    axes.add("seqlen/random_ltd_reserved_length", real(*r.random_ltd_length));
  }
  if (choice.timers) axes.add("iteration-time/iteration-time", r.elapsed_ms / 1000);
  if (choice.memory && r.reserved_bytes) {
    events.add_scalar("mem-reserved-bytes", real(*r.reserved_bytes), r.iteration, now);
  }
  if (choice.memory && r.allocated_bytes) {
    events.add_scalar("mem-allocated-bytes", real(*r.allocated_bytes), r.iteration, now);
  }
}

void add_evaluation_scalars(EventFile& events, const EvaluationReport& report,
                            std::int64_t consumed_samples, std::int64_t consumed_tokens,
                            const ScalarChoice& choice, double now) {
  ThreeAxes axes(events, {report.iteration, consumed_samples, consumed_tokens}, now);
  for (const auto& [name, value] : report.losses) {
    const std::string group = name.find('/') == std::string::npos ? "lm-loss-validation/" : "";
    const std::string tag = group + name + (report.test ? " test" : " validation");
    axes.add(tag, value);
    if (choice.validation_perplexity && !is_preference_figure(name))
      axes.add(tag + " ppl", perplexity(value));
  }
}

void add_argument_texts(EventFile& events, const ArgumentList& arguments, std::int64_t iteration,
                        double now) {
  for (const auto& [name, value] : arguments) events.add_text(name, value, iteration, now);
}

}  // namespace bloomery
