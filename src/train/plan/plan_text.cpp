#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/number_text.h"
#include "train/plan/dry_run.h"

namespace bloomery {
namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[64];
  const double value = static_cast<double>(bytes);
  if (value >= 0x1p30) {
    std::snprintf(text, sizeof text, "%.2f GiB", value / 0x1p30);
  } else {
    std::snprintf(text, sizeof text, "%.2f MiB", value / 0x1p20);
  }
  return text;
}

std::string line(const std::string& name, const std::string& value) {
  constexpr std::size_t kColumn = 30;
  std::string text = "  " + name + " ";
  text.resize(std::max(kColumn, text.size()), '.');
  return text + " " + value + "\n";
}

std::string batch_text(const Plan& plan) {
  std::string text =
      line("global batch", concat(plan.batch.global(), " = ", plan.micro_batch, " (micro) x ",
                                  plan.batch.global() / (plan.micro_batch * plan.data_ranks),
                                  " (accumulation) x ", plan.data_ranks, " (data-parallel)"));
  const std::vector<BatchSize::Stage> stages = plan.batch.stages();
  if (stages.size() > 1) {
    text +=
        line("batch size ramp-up", concat(stages.size() - 1, " stages from ", stages.front().batch,
                                          " to ", stages.back().batch, ", reached at sample ",
                                          grouped(stages.back().first_sample)));
  }
  return text;
}

std::string schedule_text(const Plan& plan) {
  const char* unit = plan.schedule_in_tokens ? " tokens" : " samples";
  const auto length = [&](double value) {
    return grouped(static_cast<std::int64_t>(std::llround(value))) + unit;
  };
  return line("learning rate", concat(plan.schedule.max_rate, " to ", plan.schedule.min_rate)) +
         line("warm-up", length(plan.schedule.warmup)) +
         line("decay", length(plan.schedule.decay)) +
         line("weight decay",
              concat(plan.schedule.start_weight_decay, " to ", plan.schedule.end_weight_decay,
                     " over ", length(plan.schedule.weight_decay_length)));
}

std::string memory_text(const Plan& plan, const PlannedMemory& m) {
  const bool recomputed =
      plan.rank.recompute.method != RecomputeOptions::Method::none || plan.rank.sequence_chunk > 0;
  const char* recompute = recomputed ? " (layers are recomputed)" : "";
  return "peak memory per rank, without kernel scratch:\n" +
         line("parameters", gibibytes(m.parameters)) + line("gradients", gibibytes(m.gradients)) +
         line("optimizer", gibibytes(m.optimizer)) +
         line("activations", gibibytes(m.activations) + recompute) +
         line("total", gibibytes(m.total())) +
         (m.on_host > 0 ? line("on the host",
                               concat(gibibytes(m.on_host), ", of which parameters and optimizer ",
                                      gibibytes(m.state_on_host)))
                        : "") +
         (m.in_files > 0 ? line("in files", gibibytes(m.in_files)) : "");
}

}  // namespace

std::string to_text(const Plan& plan, const PlannedMemory& memory) {
  std::string text = "plan:\n";
  text += line("vocabulary", concat(grouped(plan.rank.model.vocabulary.size), ", padded to ",
                                    grouped(plan.padded_vocabulary)));
  text += line("parameters", concat(grouped(plan.parameters.total), " (",
                                    grouped(plan.parameters.per_layer), " per layer)"));
  if (plan.rank.preference) {
    text += line("preference", concat("pairs of texts, beta ", plan.rank.preference->beta));
  }
  if (plan.rank.teacher) {
    text += line("teacher",
                 concat(grouped(count_parameters(plan.rank.teacher->model).total), " parameters, ",
                        plan.rank.teacher->loss_name, " x ", plan.rank.teacher->weight,
                        " at temperature ", plan.rank.teacher->temperature));
  }
  text += batch_text(plan);
  if (plan.lengths.curriculum) {
    text += line("tokens per sample",
                 concat(plan.lengths.length(1), " at first, ", plan.seq_length, " from step ",
                        grouped(plan.lengths.constant_from()), " on"));
  }
  if (plan.rank.sequence_chunk > 0) {
    text += line("sequence chunk",
                 concat(grouped(std::min(plan.rank.sequence_chunk, plan.seq_length)), " of ",
                        grouped(plan.seq_length), " tokens",
                        plan.rank.offload.keys ? ", keys of other chunks on the host" : ""));
  }
  text += line("iterations", plan.last_iteration == plan.train_iterations
                                 ? grouped(plan.last_iteration)
                                 : concat(grouped(plan.last_iteration), " of ",
                                          grouped(plan.train_iterations), ", ended by tokens"));
  text += line("samples", grouped(plan.train_samples));
  text += line("tokens", grouped(plan.train_tokens));
  text += schedule_text(plan);
  text += line("evaluations", concat(plan.num_evaluations, " and two at the end"));
  text += line("samples requested", concat(grouped(plan.requested_samples[0]), " train, ",
                                           grouped(plan.requested_samples[1]), " validation, ",
                                           grouped(plan.requested_samples[2]), " test"));
  return text + memory_text(plan, memory);
}

}  // namespace bloomery
