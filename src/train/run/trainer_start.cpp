// What a run starts from: a checkpoint, another program's weights, or nothing.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/number_text.h"
#include "checkpoint/folder.h"
#include "checkpoint/stored_model.h"
#include "samples/instruct/instruct_data.h"
#include "train/finetune/reference_values.h"
#include "train/run/initial_model.h"
#include "train/run/trainer.h"

namespace bloomery {
namespace {

ModelMemory memory_of(Rank& rank) {
  return {rank.stream(), rank.store(), rank.stage().quantized()};
}

}  // namespace

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
  }
  for (const std::string& note : loaded.notes) log_.warning(note);
  check(inputs_.schedule_refusal.empty(), inputs_.schedule_refusal);
  const auto home = std::filesystem::absolute(reader.folder()).parent_path();
  if (std::filesystem::exists(options_.checkpoint.save) &&
      std::filesystem::equivalent(home, options_.checkpoint.save)) {
    saved_ = committed_ = progress_.iteration;
  }
  log_.line(checkpoint_version_line());
  log_.line(loaded_line(folder, progress_.iteration));
  timers_->add("load-checkpoint", seconds_since(start));
  log_.timers(timers_->collect({"load-checkpoint"}, 1, rank_->mesh().host()));
}

// Either all ranks have loaded, or all hear the same.
LoadedProgress Trainer::load_together(LoadScope scope) {
  LoadedProgress loaded;
  std::string damage, failure;
  try {
    loaded = load_checkpoint(*rank_, *inputs_.checkpoint, scope);
  } catch (const DamagedFile& error) {
    damage = error.what();
  } catch (const std::system_error& error) {
    failure = error.what();
  }
  HostGroup& host = rank_->mesh().host();
  const auto failures = host.gather("storage that fails", failure, kLongSeconds);
  const auto damages = host.gather("damaged checkpoint", damage, kLongSeconds);
  const auto is_some = [](const std::string& text) { return !text.empty(); };
  if (const auto some = std::ranges::find_if(failures, is_some); some != failures.end()) {
    throw std::runtime_error(
        concat("rank ", some - failures.begin(), ": ", storage_failure(*some)));
  }
  if (const auto some = std::ranges::find_if(damages, is_some); some != damages.end()) {
    judge_damage(static_cast<int>(some - damages.begin()), *some);
  }
  take_over_loaded(*rank_);
  return loaded;
}

// What the first rank cannot find when it looks at all of the checkpoint was damaged on its way.
// Then an older checkpoint would be no better, and this one is no worse than it was.
void Trainer::judge_damage(int rank, const std::string& damage) {
  HostGroup& host = rank_->mesh().host();
  std::string found;
  if (host.rank() == 0) {
    try {
      inputs_.checkpoint->verify(rank_->stream().device().pool());
    } catch (const DamagedFile& error) {
      found = error.what();
    }
  }
  found = host.gather("damage seen by the first rank", found, kLongSeconds).front();
  if (!found.empty()) {
    throw DamagedCheckpoint(found);
  }
  throw std::runtime_error(concat(
      "rank ", rank,
      " read bytes that rank 0 does not find in the checkpoint, which is good: a "
      "mount or memory of its machine fails; nothing was moved or removed, leave the machine "
      "out: ",
      damage));
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
      load_model(memory_of(*rank_), model, start);
    } else {
      for (const std::string& note :
           load_start(memory_of(*rank_), model, rank_->options().seed, start)) {
        log_.warning(note);
      }
    }
    log_.line(concat(" the weights start from those of the model ", start));
  }
}

// Another program's weights: the run starts at iteration 0.
void Trainer::load_foreign() {
  const Clock::time_point start = Clock::now();
  load_model(memory_of(*rank_), rank_->options().model, inputs_.foreign_model);
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
    load_adapter(memory_of(*rank_), base, folder);
    log_.line(concat(" the adapter starts as that of ", folder));
  }
}

}  // namespace bloomery
