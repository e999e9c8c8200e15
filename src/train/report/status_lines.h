// Every line besides that of an iteration which scripts find in Megatron's logs, in its layout.
// All are without a line end; what has several lines joins them with one.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "train/report/iteration_line.h"

namespace bloomery {

// Name as in the table ("num_layers") and value as Python prints it (True, None, 0.0001).
using ArgumentList = std::vector<std::pair<std::string, std::string>>;
// Sorted by the whole line without regard to case, names padded with dots.
std::string arguments_table(const ArgumentList& arguments);
// A number as Python prints it: the fewest digits that give the same bits, 1.0 rather than 1.
std::string python_float(double value);
std::string local_time(std::time_t time);  // "2024-01-31 12:00:00"

// The lines of start-up, in the order in which they come.
struct WorldSizes {
  std::int64_t world = 1, data = 1, sequence = 1, tensor = 1, pipeline = 1;
};
std::string world_size_line(const WorldSizes& sizes);
std::string parameter_type_line(const std::string& torch_type);  // "torch.float16"
std::string building_tokenizer_line(const std::string& type);
std::string padded_vocabulary_line(std::int64_t size, std::int64_t padded);
std::string micro_batches_line(std::int64_t count);
std::string rampup_line(std::int64_t start, std::int64_t global_batch, std::int64_t increment,
                        std::int64_t samples);
// Two lines: tensor and pipeline.
std::string model_parallel_lines(std::int64_t tensor, std::int64_t pipeline);
std::string random_seed_line(std::int64_t seed);
std::string initialize_time_line(double seconds);
// "[after megatron is initialized] datetime: 2024-01-31 12:00:00 ", in local time.
std::string datetime_line(const std::string& event, std::time_t now);
std::string exit_line(std::int64_t iteration, std::time_t now);
std::string parameter_count_line(std::int64_t tensor_rank, std::int64_t pipeline_rank,
                                 std::int64_t parameters);
// Beside Megatron's: bytes of parameters, gradients and optimizer state by arithmetic and as they
// are allocated, of each rank that has other parameters; in MiB, called MB as elsewhere.
struct StateReport {
  std::int64_t tensor_rank = 0, pipeline_rank = 0;
  std::int64_t zero_stage = 0, holders = 1;  // ranks that divide them
  struct Bytes {
    std::int64_t expected = 0, allocated = 0;
  };
  Bytes parameters, gradients, optimizer;
  std::int64_t blocks = 0;  // ZeRO 3: where blocks are whole in turns
};
std::string state_line(const StateReport& report);
std::string decay_style_line(const std::string& style);
std::string train_iterations_line(std::int64_t iterations);
std::string building_datasets_line();
std::string dataset_sizes_lines(std::int64_t train, std::int64_t validation, std::int64_t test);
std::string setup_done_line();
std::string training_line();

// A validation result between two rules of dashes.
struct EvaluationReport {
  std::int64_t iteration = 0;
  std::vector<NamedLoss> losses;
  // At the end of a run: how many samples were drawn, from "validation" or "test"; 0 during it.
  std::int64_t final_samples = 0;
  bool test = false;
};
std::string evaluation_lines(const EvaluationReport& report);
double perplexity(double loss);  // e to the loss, which counts as 20 at most

// Bytes; the line gives MiB and calls them MB.
struct MemoryReport {
  std::int64_t allocated = 0, max_allocated = 0, reserved = 0, max_reserved = 0;
};
std::string memory_line(std::int64_t rank, std::int64_t iterations, const MemoryReport& report);

std::string saving_line(std::int64_t iteration, const std::string& folder);
std::string saved_line(std::int64_t iteration, const std::string& folder);
// Size by Megatron-DeepSpeed's rule, 14 bytes per parameter.
std::string save_throughput_line(std::int64_t parameters, double seconds);
std::string loading_line(const std::string& folder, std::int64_t iteration);
std::string checkpoint_version_line();
std::string loaded_line(const std::string& folder, std::int64_t iteration);
// Two lines: there is nothing to load, and training starts from random values.
std::string no_checkpoint_lines(const std::string& tracker);

}  // namespace bloomery
