#include "train/report/iteration_line.h"

#include <fmt/core.h>

namespace bloomery {

bool is_preference_figure(const std::string& name) {
  return name.starts_with("rewards/") || name.starts_with("logps/") || name == "dpo loss";
}

std::string iteration_line(const IterationReport& r, LogFormat format) {
  const bool deepspeed = format == LogFormat::megatron_deepspeed;
  std::string line;
  const auto add = [&line](const char* pattern, const auto&... values) {
    line += fmt::vformat(pattern, fmt::make_format_args(values...));
  };
  add(" iteration {:8d}/{:8d} |", r.iteration, r.train_iterations);
  add(" consumed samples: {:12d} |", r.consumed_samples);
  if (deepspeed) add(" consumed tokens: {:12d} |", r.consumed_tokens);
  add(" elapsed time per iteration (ms): {:.1f} |", r.elapsed_ms);
  if (r.model_tflops) {
    add(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", *r.model_tflops);
  }
  add(" learning rate: {:.3E} |", r.learning_rate);
  add(" global batch size: {:5d} |", r.global_batch);
  for (const NamedLoss& loss : r.losses) {
    if (loss.value > 0 || is_preference_figure(loss.name))
      add(" {}: {:.6E} |", loss.name, loss.value);
  }
  if (r.loss_scale) add(" loss scale: {:.1f} |", *r.loss_scale);
  if (r.grad_norm) add(" grad norm: {:.3f} |", *r.grad_norm);
  if (r.num_zeros) add(" num zeros: {:.1f} |", *r.num_zeros);
  if (r.params_norm) add(" params norm: {:.3f} |", *r.params_norm);
  if (deepspeed) {
    if (r.curriculum_seqlen) add(" curriculum seqlen: {:5d} |", *r.curriculum_seqlen);
    if (r.random_ltd_length) add(" random ltd reserved length: {:5d} |", *r.random_ltd_length);
    add(" actual seqlen: {:5d} |", r.seq_length);
  }
  add(" number of skipped iterations: {:3d} |", r.skipped);
  add(" number of nan iterations: {:3d} |", r.nans);
  if (deepspeed) {
    add(" samples per second: {:.3f} |", r.samples_per_second);
    add(" tokens per gpu per second (tgs): {:.3f} |", r.tokens_per_gpu_per_second);
    add(" TFLOPs: {:.2f} |", r.tflops);
  }
  return line;
}

}  // namespace bloomery
