#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/number_text.h"
#include "train/options/dry_run.h"

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
  const char* unit = plan.schedule_units_per_sample == 1 ? " samples" : " tokens";
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
  const char* recompute =
      plan.recompute.method == RecomputeOptions::Method::none ? "" : " (layers are recomputed)";
  return "memory of a rank at its peak, without scratch of kernels:\n" +
         line("parameters", gibibytes(m.parameters)) + line("gradients", gibibytes(m.gradients)) +
         line("optimizer", gibibytes(m.optimizer)) +
         line("activations", gibibytes(m.activations) + recompute) +
         line("together", gibibytes(m.total()));
}

}  // namespace

std::string to_text(const Plan& plan, const PlannedMemory& memory) {
  std::string text = "plan:\n";
  text += line("vocabulary", concat(grouped(plan.model.vocabulary.size), ", padded to ",
                                    grouped(plan.padded_vocabulary)));
  text += line("parameters", concat(grouped(plan.parameters.total), " (",
                                    grouped(plan.parameters.per_layer), " per layer)"));
  text += batch_text(plan);
  text += line("iterations", plan.last_iteration == plan.train_iterations
                                 ? grouped(plan.last_iteration)
                                 : concat(grouped(plan.last_iteration), " of ",
                                          grouped(plan.train_iterations), ", ended by tokens"));
  text += line("samples", grouped(plan.train_samples));
  text += line("tokens", grouped(plan.train_tokens));
  text += schedule_text(plan);
  text += line("evaluations", concat(plan.num_evaluations, " and two at the end"));
  text +=
      line("samples asked of the data", concat(grouped(plan.requested_samples[0]), " train, ",
                                               grouped(plan.requested_samples[1]), " validation, ",
                                               grouped(plan.requested_samples[2]), " test"));
  return text + memory_text(plan, memory);
}

}  // namespace bloomery
