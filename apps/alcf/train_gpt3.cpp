#include "apps/alcf/train_gpt3.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/plan/model_sizes.h"

namespace bloomery {
namespace {

class Knobs {
 public:
  explicit Knobs(const Variables& variables) : variables_(variables) {}

  bool given(const std::string& name) const { return !text(name, "").empty(); }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = variables_.find(name);
    return found == variables_.end() || found->second.empty() ? otherwise : found->second;
  }
  int count(const std::string& name, int otherwise, int least = 1) const {
    const std::string value = text(name, std::to_string(otherwise));
    int result = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), result);
    check(problem == std::errc() && end == value.data() + value.size() && result >= least, name,
          " is '", value, "': give a number of at least ", least, ", or unset it");
    return result;
  }
  bool is_on(const std::string& name, bool otherwise) const {
    return count(name, otherwise ? 1 : 0, 0) == 1;
  }

 private:
  const Variables& variables_;
};

struct Degrees {
  int tensor = 1, pipeline = 1, sequence = 1;
  bool megatron_sequence = false;  // --sequence-parallel
};

Degrees degrees(const Knobs& knobs, int world, std::vector<std::string>& notes) {
  const std::string type = knobs.text("SP_TYPE", "megatron");
  check(type == "megatron" || type == "ds", "SP_TYPE is '", type, "': give megatron or ds");
  Degrees d{knobs.count("MPSIZE", world), knobs.count("PPSIZE", 1), knobs.count("SPSIZE", 1),
            false};
  if (type == "ds") {
    const bool whole = d.tensor == world;
    d.sequence = whole ? 1 : world;
    d.tensor = whole ? world : 1;
    if (whole && world > 1) {
      notes.push_back(concat("SP_TYPE=ds with MPSIZE ", world,
                             ", which is all ranks, is tensor parallelism alone, as in the script: "
                             "MPSIZE=1 gives sequence parallelism"));
    }
    return d;
  }
  d.megatron_sequence = knobs.is_on("USE_SEQUENCE_PARALLEL", true);
  if (d.pipeline > 1) {
    d.tensor = world / d.pipeline;
    if (knobs.given("MPSIZE") && knobs.count("MPSIZE", 1) != d.tensor) {
      notes.push_back(concat("MPSIZE has no effect: with PPSIZE ", d.pipeline, " it is ", d.tensor,
                             ", as in the script"));
    }
  }
  return d;
}

std::string deepspeed_text(const Knobs& knobs, int stage, int micro_batch, int accumulation) {
  using Json = nlohmann::ordered_json;
  Json zero = {{"stage", stage}, {"overlap_comm", true}, {"contiguous_gradients", true}};
  zero["offload_optimizer"] = {{"device", "cpu"}};
  Json fp16 = {{"enabled", true}, {"initial_scale_power", 12}};
  Json config = {{"train_micro_batch_size_per_gpu", micro_batch},
                 {"gradient_accumulation_steps", accumulation},
                 {"steps_per_print", 1},
                 {"wall_clock_breakdown", true}};
  if (stage == 3) {
    config["gradient_clipping"] = 1.0;
    zero["reduce_bucket_size"] = 90'000'000;
    zero["offload_param"] = {{"device", "cpu"}};
    fp16.update(Json{{"loss_scale_window", 1000}, {"hysteresis", 2}, {"min_loss_scale", 1}});
  }
  config["zero_optimization"] = zero;
  config["fp16"] = fp16;
  config["wandb"] = {{"enabled", knobs.text("WANDB_MODE", "") != "disabled"},
                     {"project", "GenSLM-Megatron-DS"}};
  return config.dump(2) + "\n";
}

void add(Arguments& flags, const std::string& name, const std::string& value) {
  flags.push_back(name);
  flags.push_back(value);
}

void add_attention(Arguments& flags, const Knobs& knobs) {
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return knobs.given(name); });
  };
  if (any({"USE_FLASH_ATTN1", "USE_FLASH_ATTN_V1"})) {
    flags.push_back("--use-flash-attn-v1");
  } else if (any({"USE_FLASH_ATTN2", "USE_FLASH_ATTN_V2"})) {
    flags.push_back("--use-flash-attn-v2");
  } else if (any({"USE_FLASH_ATTN_TRITON"})) {
    flags.push_back("--use-flash-attn-triton");
  }
}

// The scripts set these themselves, whatever the environment says.
void name_without_effect(const Knobs& knobs, std::vector<std::string>& notes) {
  for (const auto& [name, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"GLOBAL_BATCH", "it follows from GAS, MICRO_BATCH and the number of ranks"},
           {"GRADIENT_ACCUMULATION_STEPS", "give GAS"},
           {"MODEL_TYPE", "the script trains a GPT"},
           {"DDP_IMPL", "gradients are averaged in one way"},
           {"OFFLOAD_DEVICE", "the script keeps the optimizer in host memory"},
           {"NVME_PATH", "nothing is kept on a disk"},
           {"USE_FLASH_ATTN", "give USE_FLASH_ATTN_V2"},
           {"DATA_PARENT", "give DATA_PATH, VOCAB_FILE and MERGE_FILE"},
           {"DATA_TYPE", "give DATA_PATH, VOCAB_FILE and MERGE_FILE"},
           {"OUTPUT_DIR", "give --tensorboard-dir"},
           {"CHECKPOINT_DIR", "give --save and --load"}}) {
    if (knobs.given(name)) {
      notes.push_back(concat(name, " is set and has no effect: ", why));
    }
  }
}

// What the script says whatever the environment has.
const Arguments& fixed_flags() {
  static const Arguments kFlags = {"--train-iters",
                                   "10",
                                   "--lr-decay-iters",
                                   "320000",
                                   "--split",
                                   "949,50,1",
                                   "--lr",
                                   "0.00015",
                                   "--min-lr",
                                   "1.0e-5",
                                   "--lr-decay-style",
                                   "cosine",
                                   "--lr-warmup-fraction",
                                   ".01",
                                   "--weight-decay",
                                   "1e-2",
                                   "--clip-grad",
                                   "1.0",
                                   "--fp16",
                                   "--log-interval",
                                   "1",
                                   "--save-interval",
                                   "1000",
                                   "--eval-interval",
                                   "1000",
                                   "--eval-iters",
                                   "0",
                                   "--override-opt_param-scheduler",
                                   "--log-timers-to-tensorboard",
                                   "--tensorboard-log-interval",
                                   "1",
                                   "--deepspeed"};
  return kFlags;
}

struct Numbers {
  Degrees degrees;
  int stage = 1, micro_batch = 1, accumulation = 1, length = 2048, batch = 1;
  int layers = 0, hidden = 0, heads = 0;
};

Numbers numbers_of(const Knobs& knobs, const ModelSize& size, int world,
                   std::vector<std::string>& notes) {
  Numbers n;
  n.degrees = degrees(knobs, world, notes);
  n.stage = knobs.count("ZERO_STAGE", 1, 0);
  n.micro_batch = knobs.count("MICRO_BATCH", 1);
  n.accumulation = knobs.count("GAS", 1);
  n.length = knobs.count("SEQ_LEN", 2048);
  const int model = n.degrees.tensor * n.degrees.pipeline * n.degrees.sequence;
  n.batch = std::max(1, world * n.micro_batch * n.accumulation / model);
  n.layers = knobs.count("NLAYERS", static_cast<int>(size.num_layers));
  n.hidden = knobs.count("HIDDEN", static_cast<int>(size.hidden_size));
  n.heads = knobs.count("ATEN_HEADS", static_cast<int>(size.num_attention_heads));
  return n;
}

void add_numbers(Arguments& flags, const Numbers& n, const std::string& name) {
  const Degrees& d = n.degrees;
  for (const auto& [flag, value] : std::initializer_list<std::pair<const char*, int>>{
           {"--num-layers", n.layers},
           {"--hidden-size", n.hidden},
           {"--num-attention-heads", n.heads},
           {"--seq-length", n.length},
           {"--max-position-embeddings", n.length},
           {"--micro-batch-size", n.micro_batch},
           {"--global-batch-size", n.batch},
           {"--tensor-model-parallel-size", d.tensor},
           {"--pipeline-model-parallel-size", d.pipeline},
           {"--ds-sequence-parallel-size", d.sequence},
           {"--zero-stage", n.stage}}) {
    add(flags, flag, std::to_string(value));
  }
  add(flags, "--tensorboard-dir",
      concat("outputs/", name, "_z", n.stage, "_seqlen", n.length, "_mp", d.tensor, "_pp",
             d.pipeline, "_sp", d.sequence, "_nl", n.layers, "_hs", n.hidden, "_gb", n.batch, "_mb",
             n.micro_batch, "/tensorboard"));
}

}  // namespace

AlcfRun alcf_run(const Variables& variables, int world) {
  const Knobs knobs(variables);
  AlcfRun run;
  const ModelSize& size = find_model_size(knobs.text("MODEL_SIZE_KEY", "GPT13B"));
  const Numbers n = numbers_of(knobs, size, world, run.notes);
  add_numbers(run.flags, n, size.name);
  run.flags.insert(run.flags.end(), fixed_flags().begin(), fixed_flags().end());
  for (const auto& [flag, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"--data-path", "DATA_PATH"},
                                                                  {"--vocab-file", "VOCAB_FILE"},
                                                                  {"--merge-file", "MERGE_FILE"}}) {
    if (knobs.given(name)) {
      add(run.flags, flag, knobs.text(name, ""));
    }
  }
  if (n.degrees.pipeline == 1) {
    run.flags.push_back("--no-pipeline-parallel");
  }
  if (n.stage > 0) {
    run.flags.push_back("--cpu-optimizer");
  }
  if (n.degrees.megatron_sequence) {
    run.flags.push_back("--sequence-parallel");
  }
  if (knobs.is_on("USE_ACTIVATION_CHECKPOINTING", true)) {
    run.flags.insert(run.flags.end(), {"--checkpoint-activations", "--checkpoint-num-layers", "1",
                                       "--deepspeed-activation-checkpointing"});
  }
  add_attention(run.flags, knobs);
  name_without_effect(knobs, run.notes);
  run.deepspeed = deepspeed_text(knobs, n.stage, n.micro_batch, n.accumulation);
  return run;
}

}  // namespace bloomery
