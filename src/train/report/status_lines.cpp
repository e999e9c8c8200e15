#include "train/report/status_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string arguments_table(const ArgumentList& arguments) {
  constexpr std::size_t kNameWidth = 48;
  std::vector<std::string> lines;
  for (const auto& [name, value] : arguments) {
    const std::size_t dots = name.size() < kNameWidth ? kNameWidth - name.size() : 0;
    lines.push_back(fmt::format("  {} {} {}", name, std::string(dots, '.'), value));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const std::string& a, const std::string& b) { return lower(a) < lower(b); });
  const std::string dashes(24, '-'), fewer(20, '-');
  std::string table = dashes + " arguments " + dashes + "\n";
  for (const std::string& line : lines) table += line + "\n";
  return table + fewer + " end of arguments " + fewer + "-";
}

std::string python_float(double value) {
  std::string text = fmt::format("{}", value);
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return whole ? text + ".0" : text;
}

std::string world_size_line(const WorldSizes& sizes) {
  return fmt::format(
      "using world size: {}, data-parallel-size: {}, sequence-parallel size: {}, "
      "tensor-model-parallel size: {}, pipeline-model-parallel size: {} ",
      sizes.world, sizes.data, sizes.sequence, sizes.tensor, sizes.pipeline);
}

std::string parameter_type_line(const std::string& torch_type) {
  return fmt::format("using {} for parameters ...", torch_type);
}

std::string building_tokenizer_line(const std::string& type) {
  return fmt::format("> building {} tokenizer ...", type);
}

std::string padded_vocabulary_line(std::int64_t size, std::int64_t padded) {
  return fmt::format(" > padded vocab (size: {}) with {} dummy tokens (new size: {})", size,
                     padded - size, padded);
}

std::string micro_batches_line(std::int64_t count) {
  return fmt::format("setting number of micro-batches to constant {}", count);
}

std::string rampup_line(std::int64_t start, std::int64_t global_batch, std::int64_t increment,
                        std::int64_t samples) {
  return fmt::format(
      "will use batch size rampup starting from global batch size {} to global batch size {} "
      "with batch size increments {} over {} samples.",
      start, global_batch, increment, samples);
}

std::string model_parallel_lines(std::int64_t tensor, std::int64_t pipeline) {
  return fmt::format(
      "> initialized tensor model parallel with size {}\n"
      "> initialized pipeline model parallel with size {}",
      tensor, pipeline);
}

std::string random_seed_line(std::int64_t seed) {
  return fmt::format("> setting random seeds to {} ...", seed);
}

std::string initialize_time_line(double seconds) {
  return fmt::format("time to initialize megatron (seconds): {:.3f}", seconds);
}

std::string local_time(std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) > 0 ? text : "";
}

std::string datetime_line(const std::string& event, std::time_t now) {
  return fmt::format("[{}] datetime: {} ", event, local_time(now));
}

std::string exit_line(std::int64_t iteration, std::time_t now) {
  return datetime_line(fmt::format("exiting program at iteration {}", iteration), now);
}

std::string parameter_count_line(std::int64_t tensor_rank, std::int64_t pipeline_rank,
                                 std::int64_t parameters) {
  return fmt::format(
      " > number of parameters on (tensor, pipeline) model parallel rank ({}, {}): {}", tensor_rank,
      pipeline_rank, parameters);
}

std::string state_line(const StateReport& r) {
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  const auto both = [&](const StateReport::Bytes& bytes) {
    return fmt::format("{:.1f} (arithmetic {:.1f})", mib(bytes.allocated), mib(bytes.expected));
  };
  std::string line = fmt::format(
      " > training state in MB on (tensor, pipeline) model parallel rank ({}, {}), ZeRO {} over {} "
      "rank{}: parameters {} | gradients {} | optimizer {}",
      r.tensor_rank, r.pipeline_rank, r.zero_stage, r.holders, r.holders == 1 ? "" : "s",
      both(r.parameters), both(r.gradients), both(r.optimizer));
  return r.blocks == 0 ? line : line + fmt::format(" | two whole blocks {:.1f}", mib(r.blocks));
}

std::string decay_style_line(const std::string& style) {
  return fmt::format("> learning rate decay style: {}", style);
}

std::string train_iterations_line(std::int64_t iterations) {
  return fmt::format("setting training iterations to {}", iterations);
}

std::string building_datasets_line() {
  return "> building train, validation, and test datasets ...";
}

std::string dataset_sizes_lines(std::int64_t train, std::int64_t validation, std::int64_t test) {
  return fmt::format(
      " > datasets target sizes (minimum size):\n"
      "    train:      {}\n"
      "    validation: {}\n"
      "    test:       {}",
      train, validation, test);
}

std::string setup_done_line() { return "done with setup ..."; }

std::string training_line() { return "training ..."; }

double perplexity(double loss) { return std::exp(std::min(20.0, loss)); }

std::string evaluation_lines(const EvaluationReport& report) {
  std::string line = fmt::format(" validation loss at iteration {}", report.iteration);
  if (report.final_samples > 0) {
    line += fmt::format(" on {}-sample draw from {} set", report.final_samples,
                        report.test ? "test" : "validation");
  }
  line += " | ";
  for (const auto& [name, value] : report.losses) {
    line += fmt::format("{} value: {:.6E} | ", name, value);
    if (!is_preference_figure(name)) {
      line += fmt::format("{} PPL: {:.6E} | ", name, perplexity(value));
    }
  }
  const std::string rule(line.size() + 1, '-');
  return fmt::format("{0}\n{1}\n{0}", rule, line);
}

std::string memory_line(std::int64_t rank, std::int64_t iterations, const MemoryReport& report) {
  const auto mib = [](std::int64_t bytes) {
    return python_float(static_cast<double>(bytes) / 1048576.0);
  };
  return fmt::format(
      "[Rank {}] (after {} iterations) memory (MB) | allocated: {} | max allocated: {} | "
      "reserved: {} | max reserved: {}",
      rank, iterations, mib(report.allocated), mib(report.max_allocated), mib(report.reserved),
      mib(report.max_reserved));
}

std::string saving_line(std::int64_t iteration, const std::string& folder) {
  return fmt::format("saving checkpoint at iteration {:7d} to {}", iteration, folder);
}

std::string saved_line(std::int64_t iteration, const std::string& folder) {
  return fmt::format("  successfully saved checkpoint at iteration {:7d} to {}", iteration, folder);
}

std::string save_throughput_line(std::int64_t parameters, double seconds) {
  const auto rounded = [](double value, int digits) {
    return python_float(std::stod(fmt::format("{:.{}f}", value, digits)));
  };
  const double gigabytes = static_cast<double>(parameters) / 1e9 * 14;
  const double rate = seconds > 0 ? gigabytes / seconds : 0;
  return fmt::format("Checkpoint Save GB: {}, GB/Sec: {}, Latency(second): {}",
                     rounded(gigabytes, 3), rounded(rate, 2), rounded(seconds, 3));
}

std::string loading_line(const std::string& folder, std::int64_t iteration) {
  return fmt::format(" loading checkpoint from {} at iteration {}", folder, iteration);
}

std::string checkpoint_version_line() { return " checkpoint version 3.0"; }

std::string loaded_line(const std::string& folder, std::int64_t iteration) {
  return fmt::format("  successfully loaded checkpoint from {} at iteration {}", folder, iteration);
}

std::string no_checkpoint_lines(const std::string& tracker) {
  return fmt::format(
      "WARNING: could not find the metadata file {} \n"
      "    will not load any checkpoints and will start from random",
      tracker);
}

}  // namespace bloomery
