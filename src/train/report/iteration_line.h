// The line of a training iteration, in the layout that scripts for Megatron's logs parse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {

enum class LogFormat {
  megatron_deepspeed,
  nvidia,  // Megatron-LM's: without tokens, sequence length, samples per second and TFLOPs
};

struct NamedLoss {
  std::string name;  // "lm loss"
  double value = 0;  // mean over the iterations of the interval that were not skipped
};

// Of preference tuning: a figure under TRL's name, of any sign and without a perplexity.
bool is_preference_figure(const std::string& name);

// What one line says. Times and rates are means over the iterations since the line before; the
// counts of skipped and of NaN iterations are over them. A value that is absent is not printed.
struct IterationReport {
  std::int64_t iteration = 0, train_iterations = 0;
  std::int64_t consumed_samples = 0, consumed_tokens = 0;
  double elapsed_ms = 0;  // per iteration
  double learning_rate = 0;
  std::int64_t global_batch = 0;
  std::vector<NamedLoss> losses;  // losses that are not above 0 are left out of the line
  std::optional<double> loss_scale, grad_norm, num_zeros, params_norm;
  std::optional<std::int64_t> curriculum_seqlen, random_ltd_length;
  std::int64_t seq_length = 0;  // of the batch just trained on
  std::int64_t skipped = 0, nans = 0;
  double samples_per_second = 0, tokens_per_gpu_per_second = 0, tflops = 0;
  double tokens_per_second = 0;  // of all ranks; not in the line
  // With --log-throughput: TFLOP/s per GPU by Megatron-LM's formula.
  std::optional<double> model_tflops;
  // Not in the line, but in the curves: bytes of the device, and of it what is in tensors.
  std::optional<std::int64_t> reserved_bytes, allocated_bytes;
};

// Starts with a space, ends with a bar, without line end.
std::string iteration_line(const IterationReport& report, LogFormat format);

}  // namespace bloomery
