// How a run saves: beside its steps, with all ranks informed of how each save ended.
#include <algorithm>

#include "base/number_text.h"
#include "base/stop_signals.h"
#include "train/run/trainer.h"

namespace bloomery {
namespace {

constexpr double kBeatSeconds = 2;   // between two times that ranks meet which wait for a save
constexpr double kNewsSeconds = 60;  // between two lines about it

}  // namespace

// After all that may end the run at its start, so that --save stays as it is then.
void Trainer::begin_saving() {
  if (options_.checkpoint.save.empty() || options_.evaluation.skip_train) return;
  HostGroup& host = rank_->mesh().host();
  host.barrier("loaded");
  if (host.rank() == 0) inputs_.make_room();
  host.barrier("room");
  checkpoints_ = std::make_unique<RunCheckpoints>(*rank_, options_.checkpoint, inputs_.facts);
  if (host.rank() == 0) inputs_.keep_command();
  warn_of_room(checkpoints_->room());
}

// One checkpoint has room, or the run had ended.
void Trainer::warn_of_room(const SaveRoom& room) {
  const CheckpointFlags& flags = options_.checkpoint;
  const std::int64_t left = std::max<std::int64_t>(plan_.last_iteration - progress_.iteration, 0);
  std::int64_t saves = flags.save_interval ? left / *flags.save_interval + 1 : 1;
  if (flags.keep_last > 0) saves = std::min(saves, flags.keep_last + 1);
  const double needed = static_cast<double>(room.needed) * static_cast<double>(saves);
  if (needed > static_cast<double>(room.free)) {
    log_.warning(concat("the ", saves, " checkpoints of this run take ", size_text(needed), ", ",
                        size_text(static_cast<double>(room.free)), " are free in ", flags.save,
                        ": make room, or give --keep-last or a larger --save-interval"));
  }
}

void Trainer::save() {
  if (!checkpoints_ || saved_ == progress_.iteration) return;
  const UninterruptedWork uninterrupted;
  const Clock::time_point start = Clock::now();
  await_saves();
  rank_->set_position(progress_.iteration, "save of a checkpoint");
  log_.line(saving_line(progress_.iteration, options_.checkpoint.save));
  saving_ = progress_;
  last_save_failed_ = false;
  checkpoints_->save(progress_);
  saved_ = progress_.iteration;
  if (options_.checkpoint.synchronous) {
    await_saves();
  } else {
    report_saves();
  }
  timers_->add("save-checkpoint", seconds_since(start));
  log_.timers(timers_->collect({"save-checkpoint"}, 1, rank_->mesh().host()));
}

// Until no rank saves any more. The ranks meet again and again meanwhile, so that one that dies is
// found as ever and a disk may take its time.
void Trainer::await_saves() {
  if (!saving_) return;
  const UninterruptedWork uninterrupted;
  rank_->set_position(progress_.iteration, "wait for a save");
  HostGroup& host = rank_->mesh().host();
  const double beat = std::min(kBeatSeconds, options_.parallel.timeout() / 4);
  const Clock::time_point start = Clock::now();
  double next_news = kNewsSeconds;
  while (host.any("save under way", !checkpoints_->wait_for(beat))) {
    if (seconds_since(start) >= next_news) {
      log_.line(concat(" the checkpoint of iteration ", saving_->iteration,
                       " is still being written, after ", fixed(seconds_since(start), 0), " s"));
      next_news += kNewsSeconds;
    }
  }
  report_saves();
  last_save_failed_ = host.any("save failed", last_save_failed_);
  failed_saves_ = last_save_failed_ ? failed_saves_ + 1 : 0;
  if (!last_save_failed_) committed_ = saving_->iteration;  // also where nothing is saved
  saving_.reset();
}

void Trainer::report_saves() {
  if (!checkpoints_) return;
  while (const auto outcome = checkpoints_->poll()) {
    last_save_failed_ = !outcome->committed;
    if (outcome->committed) {
      committed_ = outcome->step;
      log_.checkpoint(*saving_);
      log_.line(saved_line(outcome->step, options_.checkpoint.save));
      log_.line(save_throughput_line(plan_.parameters.total, outcome->seconds));
    }
    if (!outcome->message.empty()) log_.warning(outcome->message);
  }
}

// Nobody wants to train for days what cannot be saved. At its end a run tries in any case.
void Trainer::stop_after_failed_saves() {
  const std::int64_t most = options_.stop.failed_saves;
  if (most > 0 && failed_saves_ >= most) {
    give_up(concat(failed_saves_, failed_saves_ == 1 ? " save" : " saves in a row",
                   " failed, and --stop-after-failed-saves ", most,
                   " ends the run for it; the warnings above say why. ", not_saved()));
  }
}

std::string Trainer::not_saved() const {
  const std::string& folder = options_.checkpoint.save;
  return concat("the trained model was NOT saved: ",
                committed_ ? concat("the newest checkpoint in ", folder, " is of iteration ",
                                    *committed_, ", the run came to ", progress_.iteration)
                           : concat("there is no checkpoint of this run in ", folder));
}

}  // namespace bloomery
