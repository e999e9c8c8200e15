#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr double kMost = 1e12;

void describe_lengths(OptionTable& t, CurriculumFlags& o) {
  using Kind = DifficultySchedule::Kind;
  DifficultySchedule& s = o.schedule;
  t.add("curriculum-learning", o.enabled,
        "Train on the first tokens of each sample, more of them by a schedule, until it is whole; "
        "the rest of a sample is not seen.")
      .alias("curriculum-learning-legacy")
      .deepspeed("curriculum_learning.enabled");
  t.add_choice("curriculum-type", o.type, "What grows.", {"seqlen"})
      .deepspeed("curriculum_learning.curriculum_type");
  t.add("curriculum-min-length", s.min, "Tokens at first.", between(0, kMost))
      .deepspeed("curriculum_learning.min_difficulty");
  t.add("curriculum-max-length", s.max, "Tokens at last.", between(0, kMost))
      .deepspeed("curriculum_learning.max_difficulty");
  t.add("curriculum-schedule", s.kind,
        "How it grows: min + (step / steps)^(1 / root) x (max - min), with root 1 of fixed_linear, "
        "or by two lists.",
        {{"fixed_linear", Kind::fixed_linear},
         {"fixed_root", Kind::fixed_root},
         {"fixed_discrete", Kind::fixed_discrete}})
      .deepspeed("curriculum_learning.schedule_type");
  t.add("curriculum-steps", s.total_steps, "Steps until it is longest.", between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.total_curriculum_step");
  t.add("curriculum-length-step", s.difficulty_step, "Lengths are multiples of it.",
        between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.difficulty_step");
  t.add("curriculum-root", s.root, "Of fixed_root.", above(0))
      .deepspeed("curriculum_learning.schedule_config.root_degree");
  t.add("curriculum-lengths", s.difficulties, "Of fixed_discrete: lengths, one after another.",
        between(1, kMost))
      .deepspeed("curriculum_learning.schedule_config.difficulty");
  t.add("curriculum-last-steps", s.last_steps,
        "Of fixed_discrete: the last step of each length but the last.", between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.max_step");
}

void describe_sampling(OptionTable& t, SamplingFlags& o) {
  const std::string section = "data_efficiency", sampling = section + ".data_sampling";
  const std::string curriculum = sampling + ".curriculum_learning";
  t.add("data-efficiency-curriculum-learning", o.asked,
        "Choose samples by the metrics of the data analyzer, easy ones first, where the three "
        "switches of DeepSpeed's configuration are on as well.");
  t.add("data-efficiency", o.data_efficiency, "A switch of DeepSpeed's configuration.")
      .deepspeed(section + ".enabled");
  t.add("data-sampling", o.sampling, "Likewise.").deepspeed(sampling + ".enabled");
  t.add("data-sampling-curriculum", o.curriculum, "Likewise.").deepspeed(curriculum + ".enabled");
  t.add("data-efficiency-seed", o.seed, "Of the samples that are chosen.", between(0, 9e15))
      .deepspeed(section + ".seed");
  t.add("data-cluster-path", o.cluster_path,
        "Folder for the samples of each difficulty, as DeepSpeed keeps them; none: they are kept "
        "in memory alone.")
      .deepspeed(curriculum + ".data_cluster_path");
  t.add("curriculum-metrics", o.metrics,
        "JSON of the metrics: {\"NAME\": {\"index_to_sample_path\": PREFIX, ...}}; "
        "seqlen_truncate and seqlen_reshape cut the samples.")
      .deepspeed(curriculum + ".curriculum_metrics");
  constexpr const char* kOwn = "samples are loaded by --num-workers threads, as often as needed";
  for (const char* key : {".num_epochs", ".num_workers", ".pin_memory"}) {
    t.ignore_deepspeed(sampling + key, kOwn);
  }
}

void describe_random_ltd(OptionTable& t, RandomLtdFlags& o) {
  const std::string routing = "data_efficiency.data_routing", ltd = routing + ".random_ltd";
  const std::string schedule = ltd + ".random_ltd_schedule";
  t.add("random-ltd", o.asked,
        "Let layers compute some tokens of each sequence alone, drawn anew for every layer and "
        "sample, more of them by a schedule, where the switches of DeepSpeed's configuration are "
        "on as well; the others pass by.");
  t.add("data-routing", o.routing, "A switch of DeepSpeed's configuration.")
      .deepspeed(routing + ".enabled");
  t.add("data-routing-random-ltd", o.enabled_in_json, "Likewise.").deepspeed(ltd + ".enabled");
  t.add("random-ltd-total-layers", o.total_layers, "Layers of the model.", between(0, 1e6))
      .deepspeed(ltd + ".total_layer_num");
  t.add("random-ltd-num-layers", o.num_layers, "Layers that drop tokens.", between(0, 1e6))
      .deepspeed(ltd + ".random_ltd_layer_num");
  t.add("random-ltd-layers", o.layers, "Which, from 0 on.", between(0, 1e6))
      .deepspeed(ltd + ".random_ltd_layer_id");
  t.add("random-ltd-min-tokens", o.schedule.min, "Tokens that they keep at first.",
        between(0, kMost))
      .deepspeed(schedule + ".min_value");
  t.add("random-ltd-max-tokens", o.schedule.max, "Tokens that they keep at last.",
        between(0, kMost))
      .deepspeed(schedule + ".max_value");
  t.add_choice("random-ltd-schedule", o.schedule_type, "How it grows.", {"fixed_linear"})
      .deepspeed(schedule + ".schedule_type");
  t.add("random-ltd-steps", o.schedule.total_steps, "Steps until all are kept.", between(0, kMost))
      .deepspeed(schedule + ".schedule_config.require_steps");
  t.add("random-ltd-token-step", o.schedule.difficulty_step, "Their number is a multiple of it.",
        between(0, kMost))
      .deepspeed(schedule + ".schedule_config.seq_per_step");
  constexpr const char* kOwn = "the model knows where its masks and tokens are";
  for (const char* key : {".model_mask_name", ".model_type", ".hidden_state_order"}) {
    t.ignore_deepspeed(ltd + key, kOwn);
  }
  t.refuse_deepspeed(ltd + ".layer_token_lr_schedule", "enabled", {"false"},
                     "DeepSpeed has no such schedule either; give --lr-decay-tokens");
}

}  // namespace

void describe_curriculum(OptionTable& t, PretrainOptions& o) {
  t.section("curriculum");
  describe_lengths(t, o.curriculum);
  describe_sampling(t, o.sampling);
  o.random_ltd.schedule.never_below_min = false;
  describe_random_ltd(t, o.random_ltd);
}

}  // namespace bloomery
