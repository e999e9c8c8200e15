#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr double kMost = 1e12;

void describe_lengths(OptionTable& t, CurriculumFlags& o) {
  using Kind = DifficultySchedule::Kind;
  DifficultySchedule& s = o.schedule;
  t.add("curriculum-learning", o.enabled,
        "Sequence-length curriculum: train on truncated samples whose length grows by a schedule.")
      .alias("curriculum-learning-legacy")
      .deepspeed("curriculum_learning.enabled");
  t.add_choice("curriculum-type", o.type, "Difficulty that the curriculum raises.", {"seqlen"})
      .deepspeed("curriculum_learning.curriculum_type");
  t.add("curriculum-min-length", s.min, "Initial sequence length in tokens.", between(0, kMost))
      .deepspeed("curriculum_learning.min_difficulty");
  t.add("curriculum-max-length", s.max, "Final sequence length in tokens.", between(0, kMost))
      .deepspeed("curriculum_learning.max_difficulty");
  t.add("curriculum-schedule", s.kind,
        "Schedule of the length: min + (step / steps)^(1 / root) x (max - min), with root 1 for "
        "fixed_linear, or two lists for fixed_discrete.",
        {{"fixed_linear", Kind::fixed_linear},
         {"fixed_root", Kind::fixed_root},
         {"fixed_discrete", Kind::fixed_discrete}})
      .deepspeed("curriculum_learning.schedule_type");
  t.add("curriculum-steps", s.total_steps, "Steps until the final length.", between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.total_curriculum_step");
  t.add("curriculum-length-step", s.difficulty_step, "Round lengths to a multiple of this number.",
        between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.difficulty_step");
  t.add("curriculum-root", s.root, "Root of fixed_root.", above(0))
      .deepspeed("curriculum_learning.schedule_config.root_degree");
  t.add("curriculum-lengths", s.difficulties, "Sequence lengths of fixed_discrete, in order.",
        between(1, kMost))
      .deepspeed("curriculum_learning.schedule_config.difficulty");
  t.add("curriculum-last-steps", s.last_steps,
        "Last step of each length of fixed_discrete, except the final one.", between(0, kMost))
      .deepspeed("curriculum_learning.schedule_config.max_step");
}

void describe_sampling(OptionTable& t, SamplingFlags& o) {
  const std::string section = "data_efficiency", sampling = section + ".data_sampling";
  const std::string curriculum = sampling + ".curriculum_learning";
  t.add("data-efficiency-curriculum-learning", o.asked,
        "Choose samples by the metrics of `data analyze`, easy ones first. DeepSpeed's "
        "configuration must enable it too.");
  t.add("data-efficiency", o.data_efficiency,
        "Enable data_efficiency, a switch of DeepSpeed's configuration.")
      .deepspeed(section + ".enabled");
  t.add("data-sampling", o.sampling, "Enable data_sampling, a switch of DeepSpeed's configuration.")
      .deepspeed(sampling + ".enabled");
  t.add("data-sampling-curriculum", o.curriculum,
        "Enable the curriculum of data_sampling, a switch of DeepSpeed's configuration.")
      .deepspeed(curriculum + ".enabled");
  t.add("data-efficiency-seed", o.seed, "Seed of the curriculum's sample order.", between(0, 9e15))
      .deepspeed(section + ".seed");
  t.add(
       "data-cluster-path", o.cluster_path,
       "Folder for the samples of each difficulty, in DeepSpeed's form; none: keep them in memory.")
      .deepspeed(curriculum + ".data_cluster_path");
  t.add("curriculum-metrics", o.metrics,
        "JSON of the metrics: {\"NAME\": {\"index_to_sample_path\": PREFIX, ...}}. seqlen_truncate "
        "and seqlen_reshape change the sample length.")
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
        "Random layerwise token dropping: layers compute a random subset of tokens, which grows by "
        "a schedule. DeepSpeed's configuration must enable it too.");
  t.add("data-routing", o.routing, "Enable data_routing, a switch of DeepSpeed's configuration.")
      .deepspeed(routing + ".enabled");
  t.add("data-routing-random-ltd", o.enabled_in_json,
        "Enable random_ltd, a switch of DeepSpeed's configuration.")
      .deepspeed(ltd + ".enabled");
  t.add("random-ltd-total-layers", o.total_layers, "Number of layers of the model.",
        between(0, 1e6))
      .deepspeed(ltd + ".total_layer_num");
  t.add("random-ltd-num-layers", o.num_layers, "Number of layers that drop tokens.",
        between(0, 1e6))
      .deepspeed(ltd + ".random_ltd_layer_num");
  t.add("random-ltd-layers", o.layers, "Layers that drop tokens, counted from 0.", between(0, 1e6))
      .deepspeed(ltd + ".random_ltd_layer_id");
  t.add("random-ltd-min-tokens", o.schedule.min, "Tokens that these layers keep at first.",
        between(0, kMost))
      .deepspeed(schedule + ".min_value");
  t.add("random-ltd-max-tokens", o.schedule.max, "Tokens that these layers keep at the end.",
        between(0, kMost))
      .deepspeed(schedule + ".max_value");
  t.add_choice("random-ltd-schedule", o.schedule_type, "Schedule of the number of kept tokens.",
               {"fixed_linear"})
      .deepspeed(schedule + ".schedule_type");
  t.add("random-ltd-steps", o.schedule.total_steps, "Steps until all tokens are kept.",
        between(0, kMost))
      .deepspeed(schedule + ".schedule_config.require_steps");
  t.add("random-ltd-token-step", o.schedule.difficulty_step,
        "Round the number of kept tokens to a multiple of this number.", between(0, kMost))
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
