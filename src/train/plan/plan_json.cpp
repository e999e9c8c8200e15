#include <nlohmann/json.hpp>

#include "train/plan/dry_run.h"

namespace bloomery {

std::string to_json(const Plan& plan, const PlannedMemory& memory) {
  return nlohmann::ordered_json{{"vocabulary", plan.rank.model.vocabulary.size},
                                {"padded_vocabulary", plan.padded_vocabulary},
                                {"parameters", plan.parameters.total},
                                {"parameters_per_layer", plan.parameters.per_layer},
                                {"micro_batch", plan.micro_batch},
                                {"global_batch", plan.batch.global()},
                                {"data_ranks", plan.data_ranks},
                                {"seq_length", plan.seq_length},
                                {"iterations", plan.last_iteration},
                                {"samples", plan.train_samples},
                                {"tokens", plan.train_tokens},
                                {"max_learning_rate", plan.schedule.max_rate},
                                {"min_learning_rate", plan.schedule.min_rate},
                                {"warmup", plan.schedule.warmup},
                                {"decay", plan.schedule.decay},
                                {"schedule_unit", plan.schedule_in_tokens ? "tokens" : "samples"},
                                {"evaluations", plan.num_evaluations},
                                {"requested_samples", plan.requested_samples},
                                {"memory_bytes",
                                 {{"parameters", memory.parameters},
                                  {"gradients", memory.gradients},
                                  {"optimizer", memory.optimizer},
                                  {"activations", memory.activations},
                                  {"total", memory.total()},
                                  {"on_host", memory.on_host},
                                  {"state_on_host", memory.state_on_host},
                                  {"in_files", memory.in_files}}}}
      .dump(2);
}

}  // namespace bloomery
