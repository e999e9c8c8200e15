#include "train/run/rank_lines.h"

#include <functional>

#include "train/plan/state_memory.h"

namespace bloomery {
namespace {

using Numbers = std::vector<std::int64_t>;

void for_each_model_rank(Rank& rank, const std::string& topic, const Numbers& mine,
                         const std::function<void(int rank, const Numbers&)>& say) {
  Mesh& mesh = rank.mesh();
  std::vector<double> sent = {static_cast<double>(mesh.coordinate(Axis::data))};
  sent.insert(sent.end(), mine.begin(), mine.end());
  int number = 0;
  for (const std::vector<double>& each : mesh.host().gather_numbers(topic, sent)) {
    if (each.front() == 0) {
      say(number, Numbers(each.begin() + 1, each.end()));
    }
    ++number;
  }
}

}  // namespace

void log_parameters(Rank& rank, RunLog& log) {
  std::int64_t count = 0;
  for (const Parameter* parameter : rank.parameters()) {
    count += parameter->box.extent.numel();
  }
  const Mesh& mesh = rank.mesh();
  for_each_model_rank(
      rank, "parameters", {mesh.coordinate(Axis::tensor), mesh.coordinate(Axis::pipeline), count},
      [&log](int, const Numbers& n) { log.line(parameter_count_line(n[0], n[1], n[2])); });
}

void log_state(Rank& rank, RunLog& log) {
  Mesh& mesh = rank.mesh();
  const StateMemory expected = expected_state(rank), allocated = allocated_state(rank);
  const Sharding& s = rank.options().layout.sharded;
  for_each_model_rank(
      rank, "training state",
      {mesh.coordinate(Axis::tensor), mesh.coordinate(Axis::pipeline),
       s.optimizer + s.gradients + s.values, mesh.size(kReplicaAxes), expected.parameters,
       allocated.parameters, expected.gradients, allocated.gradients, expected.optimizer,
       allocated.optimizer, static_cast<std::int64_t>(rank.store().bytes().blocks)},
      [&log](int, const Numbers& n) {
        log.line(state_line({.tensor_rank = n[0],
                             .pipeline_rank = n[1],
                             .zero_stage = n[2],
                             .holders = n[3],
                             .parameters = {n[4], n[5]},
                             .gradients = {n[6], n[7]},
                             .optimizer = {n[8], n[9]},
                             .blocks = n[10]}));
      });
}

void log_offload(Rank& rank, RunLog& log) {
  if (rank.stage().host() == nullptr) {
    return;
  }
  constexpr double kMebibyte = 0x1p20;
  std::string line = concat(
      " offloaded per rank: ", static_cast<double>(rank.stage().host()->used_bytes()) / kMebibyte,
      " MiB in host memory");
  if (StateFiles* const files = rank.stage().files()) {
    line += concat(", ", static_cast<double>(files->used_bytes()) / kMebibyte, " MiB in files in ",
                   rank.options().offload.folder, " (", files->method(), ")");
  }
  log.line(line);
}

void log_layers_without_fp8(Rank& rank, RunLog& log) {
  if (rank.stage().features().fp8() == nullptr ||
      rank.stage().features().fp8()->left_out().empty()) {
    return;
  }
  const std::vector<std::string>& names = rank.stage().features().fp8()->left_out();
  log.warning(concat("fp8: ", names.size(),
                     names.size() == 1 ? " linear layer computes" : " linear layers compute",
                     " in bf16, because sizes are not multiples of ", kFp8Multiple, ": ",
                     names.front(), names.size() == 1 ? "" : " and others"));
}

void log_memory(Rank& rank, std::int64_t iteration, RunLog& log) {
  const MemoryStatistics m = rank.stream().memory()->statistics();
  const auto bytes = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  for_each_model_rank(
      rank, "memory",
      {bytes(m.used_bytes), bytes(m.peak_used_bytes), bytes(m.reserved_bytes),
       bytes(m.peak_reserved_bytes)},
      [&](int number, const Numbers& n) {
        log.line(memory_line(
            number, iteration,
            {.allocated = n[0], .max_allocated = n[1], .reserved = n[2], .max_reserved = n[3]}));
      });
}

}  // namespace bloomery
