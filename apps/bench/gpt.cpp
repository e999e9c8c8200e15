// `bloomery bench gpt`: whole training steps of a GPT on random tokens: tokens per second and peak
// memory. bench/peers/gpt_torch.py runs the same model in PyTorch.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>

#include "apps/bench/bench.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/common/progress_line.h"
#include "base/file.h"
#include "ops/matmul/choices.h"
#include "train/options/plan.h"
#include "train/profile/step_profiler.h"
#include "train/rank.h"

namespace bloomery {
namespace {

struct Size {
  int layers;
  std::int64_t hidden, heads, vocabulary, cpu_micro_batch, cpu_length;
};

const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> table = {
      {"10M", {6, 384, 6, 512, 16, 256}},
      {"124M", {12, 768, 12, 50304, 4, 256}},
      {"345M", {24, 1024, 16, 50304, 2, 256}},
      {"1.7B", {24, 2304, 24, 51200, 1, 256}},
  };
  return table;
}

struct BenchGptOptions {
  std::string size = "124M";
  DeviceChoice device;
  DType dtype = DType::fp32;
  Fp8Flags fp8;
  std::int64_t micro_batch = 0, length = 0;
  int num_micro_batches = 1;
  int num_steps = 10;
  float dropout = 0;
  bool recompute = false, recompute_activations = false;
  bool on_request = false;
  bool memory_report = false;
  std::string profile;
};

void describe(OptionTable& t, BenchGptOptions& o) {
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes()) {
    names.push_back(name);
  }
  t.section("model");
  t.add_choice("size", o.size, "Which GPT.", names);
  t.add("micro-batch-size", o.micro_batch, "Sequences; 0: 64 on a GPU, a few on a CPU.",
        at_least(0));
  t.add("seq-length", o.length, "Tokens per sequence; 0: 1024 on a GPU, 256 on a CPU.",
        at_least(0));
  t.add("gradient-accumulation-steps", o.num_micro_batches, "Micro-batches per step.", at_least(1));
  t.add("dropout", o.dropout, "Of attention and hidden states.", from_to_below(0, 1));
  t.add("recompute", o.recompute, "Recompute every block in backward.");
  t.add("recompute-activations", o.recompute_activations,
        "Make norms and activations again in backward rather than keep them.");
  t.section("run");
  describe(t, o.device);
  t.add("dtype", o.dtype, "Of parameters and activations.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}});
  t.add("steps", o.num_steps, "Timed steps, after two that are not.", at_least(1));
  t.add("on-request", o.on_request,
        "Print \"ready\" after those two and measure once for every line on the standard input.");
  t.add("memory-report", o.memory_report, "Print what the tape keeps, entry by entry.");
  t.add("profile", o.profile,
        "Profile three more steps: print where their time went by op and write a trace to this "
        "file, which Perfetto (ui.perfetto.dev) and chrome://tracing show.");
  describe_fp8(t, o.fp8);
}

RankOptions rank_options(const BenchGptOptions& o, const DeviceOptions& device,
                         std::int64_t length) {
  const Size& size = sizes().at(o.size);
  RankOptions options;
  options.model.num_layers = size.layers;
  options.model.hidden_size = size.hidden;
  options.model.attention.num_heads = size.heads;
  options.model.vocabulary.size = size.vocabulary;
  options.model.positions.max_length = length;
  options.model.attention.dropout = options.model.residual.dropout = o.dropout;
  if (o.recompute) {
    options.recompute.method = RecomputeOptions::Method::uniform;
  }
  options.recompute.cheap_values = o.recompute_activations;
  options.dtype = o.dtype;
  options.fp8 = fp8_options(o.fp8);
  options.device = device;
  if (o.dtype == DType::fp16) {  // fixed: steps skipped in search of a scale would not count
    options.optimizer.loss_scale.initial = 65536;
  }
  options.optimizer.schedule.learning_rate = 3e-4;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  options.optimizer.schedule.weight_decay = 0.1;
  options.optimizer.beta2 = 0.95;
  return options;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The device is waited for once per step, as a log line would.
void run_step(Rank& rank, const std::vector<Batch>& batches) {
  rank.enqueue_gradients(static_cast<std::int64_t>(batches.size()),
                         [&](std::int64_t m) { return batches[static_cast<std::size_t>(m)]; });
  rank.enqueue_reduction();
  rank.enqueue_update(static_cast<std::int64_t>(batches.size()) * batches[0].num_sequences);
  rank.stream().synchronize();
}

// Two steps that make all plans and buffers; peak memory counts from then on.
void warm_up(Rank& rank, const std::vector<Batch>& batches) {
  run_step(rank, batches);
  run_step(rank, batches);
  rank.stream().memory()->reset_peak();
}

// Runs steps and prints their rate: the median counts.
void measure(Rank& rank, const std::vector<Batch>& batches, const BenchGptOptions& o,
             std::ostream& out) {
  std::vector<double> times;
  ProgressLine progress("steps");
  for (int step = 0; step < o.num_steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    run_step(rank, batches);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    times.push_back(elapsed.count());
    progress.at(step + 1, o.num_steps);
  }
  progress.finish();
  const double seconds = median(times);
  const std::int64_t sequences = batches[0].num_sequences, length = batches[0].length;
  const auto tokens = static_cast<double>(sequences * length * o.num_micro_batches);
  const MemoryStatistics memory = rank.stream().memory()->statistics();
  const StepReport report = rank.optimizer().report(0);
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  out << "bloomery " << rank.stream().device().description() << ' ' << o.size << ' ' << o.dtype
      << (o.fp8.format == Fp8Flags::Format::none ? "" : " with fp8") << ", " << sequences << " x "
      << length << " tokens: " << std::fixed << std::setprecision(0) << tokens / seconds
      << " tokens/s, " << std::setprecision(1) << seconds * 1e3 << " ms/step, peak "
      << std::setprecision(2) << static_cast<double>(memory.peak_used_bytes) / kGiB << " GiB used, "
      << static_cast<double>(memory.reserved_bytes) / kGiB << " GiB reserved, gradient norm "
      << std::setprecision(4) << report.grad_norm << std::endl;
}

void profile_steps(Rank& rank, const std::vector<Batch>& batches, AtomicFile& file,
                   std::ostream& out) {
  Trace trace;
  StepProfiler profiler(rank.stream(), trace, true);
  for (int step = 1; step <= 3; ++step) {
    profiler.begin_step(step);
    run_step(rank, batches);
    profiler.end_step();
  }
  file.write(chrome_trace(trace, 0));
  file.commit();
  out << to_text(profiler.table());
}

}  // namespace

int bench_gpt(const Arguments& arguments, std::ostream& out) {
  BenchGptOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out, "usage: bloomery bench gpt [OPTIONS]\n")) {
    return 0;
  }
  const DeviceOptions device = o.device.options();
  const bool on_cuda = device.kind == DeviceKind::cuda;
  const Size& size = sizes().at(o.size);
  const std::int64_t length = o.length > 0 ? o.length : on_cuda ? 1024 : size.cpu_length;
  const std::int64_t sequences = o.micro_batch > 0 ? o.micro_batch
                                 : on_cuda         ? 64
                                                   : size.cpu_micro_batch;

  check(length <= INT32_MAX && sequences <= INT32_MAX / length, "--micro-batch-size ", sequences,
        " x --seq-length ", length, " are more tokens than a micro-batch can have, ", INT32_MAX);
  std::optional<AtomicFile> trace_file;  // now: a path that cannot be written costs no steps
  if (!o.profile.empty()) {
    trace_file.emplace(o.profile);
  }
  Rank rank(rank_options(o, device, length));
  rank.stream().device().service<MatmulChoices>().timing = true;
  std::vector<Batch> batches;
  for (int m = 0; m < o.num_micro_batches; ++m) {
    batches.push_back(
        upload(random_batch(sequences, length, size.vocabulary, 1, m * sequences), rank.stream()));
  }
  if (o.memory_report) {
    rank.report_tape();
  }
  warm_up(rank, batches);
  if (o.on_request) {
    out << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      measure(rank, batches, o, out);
    }
  } else {
    measure(rank, batches, o, out);
  }
  if (o.memory_report) {
    out << rank.tape_report();
  }
  if (trace_file) {
    profile_steps(rank, batches, *trace_file, out);
  }
  return 0;
}

}  // namespace bloomery
