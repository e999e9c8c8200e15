// `bloomery bench train`: whole training steps of a model on random tokens: tokens per second, MFU
// and peak memory, and the least time that a step could take. bench/peers/train_torch.py runs the
// same models in PyTorch.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <optional>

#include "apps/bench/bench.h"
#include "apps/bench/floor.h"
#include "apps/bench/train_options.h"
#include "apps/common/command_line.h"
#include "apps/common/progress_line.h"
#include "base/file.h"
#include "ops/matmul/choices.h"
#include "parallel/vocab_embedding.h"
#include "train/profile/step_profiler.h"
#include "train/report/throughput.h"

namespace bloomery {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The device is waited for once per step, as a log line would.
void run_step(Rank& rank, const std::vector<Batch>& batches) {
  rank.enqueue_gradients({static_cast<std::int64_t>(batches.size()),
                          [&](std::int64_t m) { return batches[static_cast<std::size_t>(m)]; }});
  rank.enqueue_reduction();
  rank.enqueue_update(static_cast<std::int64_t>(batches.size()) * batches[0].num_sequences);
  rank.stream().synchronize();
}

// Two steps that make all plans and buffers, and those in which the rank finds out whether graphs
// pay. Peak memory counts after the two: replayed passes ask the pool for nothing.
void warm_up(Rank& rank, const std::vector<Batch>& batches) {
  constexpr int kMost = 16;
  run_step(rank, batches);
  run_step(rank, batches);
  rank.stream().memory()->reset_peak();
  for (int step = 2; step < kMost && !rank.runner().graphs_settled(); ++step) {
    run_step(rank, batches);
  }
}

// The median of the steps' times.
double measure(Rank& rank, const std::vector<Batch>& batches, int num_steps) {
  std::vector<double> times;
  ProgressLine progress("steps");
  for (int step = 0; step < num_steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    run_step(rank, batches);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    times.push_back(elapsed.count());
    progress.at(step + 1, num_steps);
  }
  progress.finish();
  return median(times);
}

// Of the model's operations, in the time of a step; none where nobody knows what all would be.
std::optional<double> model_flops_utilization(Rank& rank, const BenchTrainOptions& o,
                                              const BenchBatch& batch, double seconds) {
  const std::optional<double> peak =
      o.peak_tflops ? *o.peak_tflops * 1e12
                    : peak_flops(rank.stream().device().description(), o.dtype);
  if (!peak) {
    return std::nullopt;
  }
  const ModelOptions& model = rank.model().options();
  const ModelShape shape = model_shape(
      model, padded_vocabulary(model.vocabulary.size, model.vocabulary.divisible_by, 1));
  return model_flops(shape, batch.sequences * batch.micro_batches, batch.length) / seconds / *peak;
}

void print_rate(Rank& rank, const BenchTrainOptions& o, double seconds, std::ostream& out) {
  const BenchBatch batch = o.batch(rank.stream().device().kind());
  const auto tokens = static_cast<double>(batch.sequences * batch.length * batch.micro_batches);
  const MemoryStatistics memory = rank.stream().memory()->statistics();
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  out << "bloomery " << rank.stream().device().description() << ' ' << o.size << ' ' << o.dtype
      << (o.fp8.format == Fp8Flags::Format::none ? "" : " with fp8") << ", "
      << num_parameters(rank.model().options()) << " parameters, ";
  if (batch.micro_batches > 1) {
    out << batch.micro_batches << " x ";
  }
  out << batch.sequences << " x " << batch.length << " tokens: " << std::fixed
      << std::setprecision(0) << tokens / seconds << " tokens/s, " << std::setprecision(1)
      << seconds * 1e3 << " ms/step, ";
  if (const auto share = model_flops_utilization(rank, o, batch, seconds)) {
    out << "MFU " << *share * 100 << " %, ";
  }
  out << "peak " << std::setprecision(2) << static_cast<double>(memory.peak_used_bytes) / kGiB
      << " GiB used, " << static_cast<double>(memory.reserved_bytes) / kGiB
      << " GiB reserved, gradient norm " << std::setprecision(4)
      << rank.optimizer().report(0).grad_norm
      << (rank.runner().replays_graphs() ? ", passes replayed as graphs" : "") << std::endl;
}

// Profiles three steps; `file`: of their trace, or null.
TimeTable profile_steps(Rank& rank, const std::vector<Batch>& batches, AtomicFile* file) {
  Trace trace;
  StepProfiler profiler(rank.stream(), trace, true);
  for (int step = 1; step <= 3; ++step) {
    profiler.begin_step(step);
    run_step(rank, batches);
    profiler.end_step();
  }
  if (file != nullptr) {
    file->write(chrome_trace(trace, 0));
    file->commit();
  }
  return profiler.table();
}

// What was asked for beside the rate. `seconds`: of a step.
void print_reports(Rank& rank, const std::vector<Batch>& batches, const BenchTrainOptions& o,
                   AtomicFile* trace_file, double seconds, std::ostream& out) {
  if (o.memory_report) {
    out << rank.runner().executor().tape_report->entries;
  }
  TimeTable table;
  if (trace_file != nullptr || o.ceilings) {
    table = profile_steps(rank, batches, trace_file);
  }
  if (trace_file != nullptr) {
    out << to_text(table);
  }
  if (o.floor || o.ceilings) {
    const StepWork work = work_of_step(rank.options(), o.batch(rank.stream().device().kind()));
    const Floor floor = measure_floor(rank.stream(), work, o.floor_seconds);
    out << to_text(floor, seconds) << (o.ceilings ? ceilings_text(floor, table) : "");
  }
}

}  // namespace

int bench_train(const Arguments& arguments, std::ostream& out) {
  BenchTrainOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench train [OPTIONS]\n\nMeasures whole training steps of a "
                    "model.\n\nexample:\n  bloomery bench train --size 124M\n")) {
    return 0;
  }
  std::optional<AtomicFile> trace_file;  // now: a path that cannot be written costs no steps
  if (!o.profile.empty()) {
    trace_file.emplace(o.profile);
  }
  const DeviceOptions device = o.device.options();
  const BenchBatch batch = o.batch(device.kind);
  Rank rank(rank_options(o, device));
  auto& choices = rank.stream().device().service<MatmulChoices>();
  choices.timing = choices.lasting = true;
  std::vector<Batch> batches;
  for (int m = 0; m < batch.micro_batches; ++m) {
    batches.push_back(
        rank.upload(random_batch(batch.sequences, batch.length,
                                 rank.options().model.vocabulary.size, 1, m * batch.sequences)));
  }
  if (o.memory_report) {
    rank.runner().executor().tape_report.emplace();
  }
  warm_up(rank, batches);
  double seconds = 0;
  const auto measure_once = [&] {
    seconds = measure(rank, batches, o.steps);
    print_rate(rank, o, seconds, out);
  };
  if (o.on_request) {
    out << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      measure_once();
    }
  } else {
    measure_once();
  }
  print_reports(rank, batches, o, trace_file ? &*trace_file : nullptr, seconds, out);
  return 0;
}

}  // namespace bloomery
