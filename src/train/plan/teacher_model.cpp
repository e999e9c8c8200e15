#include "train/plan/teacher_model.h"

#include <array>
#include <filesystem>

#include "checkpoint/stored_model.h"

namespace bloomery {
namespace {

constexpr std::array kFlags = {"load-teacher",
                               "num-layers-teacher",
                               "hidden-size-teacher",
                               "num-attention-heads-teacher",
                               "num-experts-teacher",
                               "kd-beta-ce",
                               "kd-temp",
                               "kd-until"};

// The student with other sizes, as in Megatron-DeepSpeed.
ModelOptions model_of_flags(const PretrainOptions& o) {
  const DistillFlags& flags = o.distillation;
  ModelOptions model = o.model;
  model.num_layers = flags.num_layers.value_or(model.num_layers);
  model.hidden_size = flags.hidden_size.value_or(model.hidden_size);
  model.attention.num_heads = flags.num_heads.value_or(model.attention.num_heads);
  model.moe.num_experts = flags.num_experts;
  return model;
}

void check_sizes(const OptionTable& table, const DistillFlags& flags, const ModelOptions& stored) {
  std::string wrong;
  const auto compare = [&](const char* flag, std::optional<std::int64_t> asked,
                           std::int64_t found) {
    if (asked && *asked != found) {
      wrong += concat("\n  --", flag, " ", *asked, ", where the checkpoint has ", found);
    }
  };
  compare("num-layers-teacher", flags.num_layers, stored.num_layers);
  compare("hidden-size-teacher", flags.hidden_size, stored.hidden_size);
  compare("num-attention-heads-teacher", flags.num_heads, stored.attention.num_heads);
  ModelOptions asked = stored;
  asked.moe.num_experts = flags.num_experts;
  for (std::int64_t layer = 0; layer < stored.num_layers && wrong.empty(); ++layer) {
    if (table.given("num-experts-teacher") &&
        asked.moe.experts_of(layer) != stored.moe.experts_of(layer)) {
      wrong +=
          concat("\n  --num-experts-teacher gives layer ", layer, " ", asked.moe.experts_of(layer),
                 " experts, the checkpoint has ", stored.moe.experts_of(layer));
    }
  }
  check(wrong.empty(), "--load-teacher ", flags.load,
        " holds another model than the flags say; correct or leave out:", wrong);
}

}  // namespace

void describe_distillation(OptionTable& t, DistillFlags& o) {
  t.section("distillation");
  t.add("kd", o.kd,
        "Knowledge distillation: add the KL divergence from a teacher's predictions to the loss.");
  t.add("mos", o.mos,
        "Knowledge distillation as with --kd, logged as mos loss (mixture of students).");
  t.add("load-teacher", o.load, "Checkpoint of the teacher, in any form that --load reads.");
  t.add("kd-beta-ce", o.weight, "Weight of the distillation loss.", at_least(0));
  t.add("kd-temp", o.temperature, "Temperature of teacher and student.", above(0));
  t.add("kd-until", o.until, "Last iteration with distillation; none: all iterations.",
        at_least(0));
  t.add("num-layers-teacher", o.num_layers,
        "Number of layers of the teacher; must match its checkpoint.", between(1, 1e6));
  t.add("hidden-size-teacher", o.hidden_size, "Hidden size of the teacher.", between(1, 1e8));
  t.add("num-attention-heads-teacher", o.num_heads, "Number of attention heads of the teacher.",
        between(1, 1e6));
  t.add("num-experts-teacher", o.num_experts, "Experts of the teacher, as --num-experts.",
        between(1, 1e5));
}

void read_teacher(const OptionTable& table, PretrainOptions& o, std::vector<std::string>& notes) {
  DistillFlags& flags = o.distillation;
  if (!flags.asked()) {
    for (const char* flag : kFlags) {
      if (table.given(flag)) {
        notes.push_back(concat("--", flag, " has no effect without --kd or --mos"));
      }
    }
    return;
  }
  check(!flags.load.empty(), flags.kd ? "--kd" : "--mos",
        " needs --load-teacher FOLDER: the checkpoint of the model to learn from");
  if (!std::filesystem::exists(flags.load)) {
    flags.teacher = model_of_flags(o);
    return;
  }
  const std::optional<ModelRecord> stored = stored_model(flags.load);
  check(stored.has_value(), "--load-teacher: there is no model in ", flags.load);
  check_sizes(table, flags, stored->model);
  notes.insert(notes.end(), stored->notes.begin(), stored->notes.end());
  flags.teacher = stored->model;
}

}  // namespace bloomery
