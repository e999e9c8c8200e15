// What a run starts from: a checkpoint, another program's weights, or nothing.
#include <filesystem>

#include "base/number_text.h"
#include "checkpoint/stored_model.h"
#include "data/instruct/instruct_data.h"
#include "train/initial_model.h"
#include "train/reference_values.h"
#include "train/trainer.h"

namespace bloomery {

void Trainer::load() {
  const CheckpointReader& reader = *inputs_.checkpoint;
  const Clock::time_point start = Clock::now();
  const std::string folder = options_.checkpoint.load;
  log_.line(loading_line(folder, reader.state().step));
  const bool no_optimizer = options_.checkpoint.no_load_optim || options_.evaluation.skip_train;
  const LoadScope scope = options_.checkpoint.finetune ? LoadScope::weights
                          : no_optimizer               ? LoadScope::without_optimizer
                                                       : LoadScope::everything;
  const LoadedProgress loaded = load_together(scope);
  if (scope == LoadScope::weights) start_adapter(reader.folder());
  if (options_.checkpoint.reset_iteration) {
    StepState state = rank_->optimizer().state();
    state.num_samples = 0;  // the schedule starts anew
    rank_->optimizer().set_state(state);
  } else {
    progress_ = loaded.counted(plan_.seq_length);
    rank_->set_completed_steps(progress_.iteration);
  }
  for (const std::string& note : loaded.notes) log_.warning(note);
  check(inputs_.schedule_refusal.empty(), inputs_.schedule_refusal);
  const auto home = std::filesystem::absolute(reader.folder()).parent_path();
  if (std::filesystem::exists(options_.checkpoint.save) &&
      std::filesystem::equivalent(home, options_.checkpoint.save)) {
    saved_ = progress_.iteration;
  }
  log_.line(checkpoint_version_line());
  log_.line(loaded_line(folder, progress_.iteration));
  timers_->add("load-checkpoint", seconds_since(start));
  log_.timers(timers_->collect({"load-checkpoint"}, 1, rank_->mesh().host()));
}

LoadedProgress Trainer::load_together(LoadScope scope) {
  LoadedProgress loaded;
  std::string problem;
  try {
    loaded = load_checkpoint(*rank_, *inputs_.checkpoint, scope);
  } catch (const UnreadableFile& error) {
    problem = error.what();
  }
  const auto problems = rank_->mesh().host().gather("unreadable checkpoint", problem, kLongSeconds);
  for (const std::string& each : problems) {
    if (!each.empty()) {
      throw UnreadableCheckpoint(each);
    }
  }
  take_over_loaded(*rank_);
  return loaded;
}

// Without a checkpoint of this model.
void Trainer::begin_anew() {
  if (const std::string& folder = options_.checkpoint.load; !folder.empty()) {
    log_.line(no_checkpoint_lines(
        (std::filesystem::path(folder) / "latest_checkpointed_iteration.txt").string()));
  }
  if (const std::string& start = options_.checkpoint.start; !start.empty()) {
    const ModelOptions& model = rank_->options().model;
    const bool whole = inputs_.task != nullptr && !model.task.any() &&
                       stored_model(start).value().model.family == model.family;
    if (whole) {  // a retriever that goes on with questions
      load_model(rank_->stream(), rank_->store(), model, start);
    } else {
      for (const std::string& note :
           load_start(rank_->stream(), rank_->store(), model, rank_->options().seed, start)) {
        log_.warning(note);
      }
    }
    log_.line(concat(" the weights start from those of the model ", start));
  }
}

// Another program's weights: the run starts at iteration 0.
void Trainer::load_foreign() {
  const Clock::time_point start = Clock::now();
  load_model(rank_->stream(), rank_->store(), rank_->options().model, inputs_.foreign_model);
  start_adapter(inputs_.foreign_model);
  log_.line(concat(" the weights are those of the Hugging Face model ", inputs_.foreign_model));
  timers_->add("load-checkpoint", seconds_since(start));
  log_.timers(timers_->collect({"load-checkpoint"}, 1, rank_->mesh().host()));
}

// Of preference tuning: the model that the run starts from says how likely the answers are, once.
void Trainer::prepare_reference() {
  const Clock::time_point start = Clock::now();
  const InstructData& pairs = *data_->instructions();
  if (inputs_.checkpoint != nullptr && !options_.checkpoint.finetune) {
    read_reference(options_.checkpoint.load, pairs);
    return log_.line(concat(" the reference is that of ", options_.checkpoint.load));
  }
  rank_->set_position(0, "log-probabilities under the reference");
  for (const Split split : kSplits) {
    if (data_->source(split) != nullptr) {
      compute_reference(*rank_, *data_, split, feed_options(0));
    }
  }
  if (!options_.checkpoint.save.empty() && rank_->mesh().host().rank() == 0) {
    write_reference(options_.checkpoint.save, pairs);
  }
  rank_->mesh().host().barrier("reference");
  log_.line(
      concat(" the reference is the model that the run starts from: log-probabilities of all "
             "pairs took ",
             fixed(seconds_since(start), 1), " s"));
}

// From PEFT's files, where the run starts from the weights in `base` and names such files.
void Trainer::start_adapter(const std::filesystem::path& base) {
  if (const std::string& folder = options_.checkpoint.adapter; !folder.empty()) {
    load_adapter(rank_->stream(), rank_->store(), base, folder);
    log_.line(concat(" the adapter starts as that of ", folder));
  }
}

}  // namespace bloomery
