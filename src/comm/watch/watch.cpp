#include "comm/watch/watch.h"

#include <algorithm>

namespace bloomery {
namespace {

constexpr std::chrono::milliseconds kLook{250}, kBeat{500};
constexpr std::size_t kCallsOfABeat = 1;  // and those that are not done

}  // namespace

Watch::Watch(std::shared_ptr<World> world, std::vector<FlightRecorder*> recorders,
             std::function<void(bool failed)> beat)
    : world_(std::move(world)), recorders_(std::move(recorders)), beat_(std::move(beat)) {
  thread_ = std::thread([this] { run(); });
  reaction_ = world_->when_failed([this] {
    {
      const std::lock_guard lock(mutex_);
      failed_ = true;
    }
    changed_.notify_all();
  });
}

Watch::~Watch() {
  world_->forget(reaction_);
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::run() {
  std::chrono::steady_clock::time_point next_beat{};
  std::unique_lock lock(mutex_);
  while (!ends_ && !failed_) {
    lock.unlock();
    look();
    if (const auto now = std::chrono::steady_clock::now(); now >= next_beat) {
      next_beat = now + kBeat;
      beat_(false);
    }
    lock.lock();
    changed_.wait_for(lock, kLook, [this] { return ends_ || failed_; });
  }
  if (failed_) {
    lock.unlock();
    beat_(true);
  }
}

void Watch::look() {
  world_->run_checks();
  for (FlightRecorder* const recorder : recorders_) {
    recorder->look_at_device();
    const auto waiting = recorder->waiting_on_device();
    if (waiting && waiting->seconds > world_->timeout_seconds()) {
      world_->fail_waiting(recorder->rank(),
                           concat("rank ", recorder->rank(), " waited ", world_->timeout_seconds(),
                                  " s in ", waiting->text, " on its GPU"));
    }
  }
}

// A silent hub takes nothing: whoever waited for it to would be as silent.
ProcessWatch::ProcessWatch(std::shared_ptr<ControlPlane> control)
    : control_(std::move(control)),
      recorder_(control_->rank(), control_->world()),
      watch_(control_->world(), {&recorder_},
             [this](bool failed) {
               if (!control_->hub_is_silent()) {
                 control_->tell_status(
                     recorder_.status(failed ? FlightRecorder::kTold : kCallsOfABeat).bytes(),
                     failed);
               }
             }),
      reaction_(control_->world()->when_failed(
          [this] { first_is_lost_ = control_->hub_is_silent() || control_->has_lost_hub(); })) {}

bool ProcessWatch::first_tells() const {
  return control_->world()->failure().silence && !first_is_lost();
}

std::optional<WatchReport> ProcessWatch::report() {
  const int rank = control_->rank();
  if (!control_->world()->failure().silence || rank != (first_is_lost() ? 1 : 0)) {
    return {};
  }
  std::vector<KnownRank> ranks;
  for (const ControlPlane::Status& told : control_->statuses()) {
    KnownRank& known = ranks.emplace_back();
    known.age = told.age;
    known.answered = told.answered;
    if (!told.bytes.empty()) {
      known.status = RankStatus::from(told.bytes);
    }
  }
  ranks.resize(static_cast<std::size_t>(control_->size()));
  ranks[static_cast<std::size_t>(rank)] = {recorder_.status(), true, 0};
  if (rank != 0) {  // nobody gathers last words: what was known of the others has to do
    for (std::size_t other = 2; other < ranks.size(); ++other) {
      ranks[other].answered = ranks[other].status.has_value();
      ranks[other].asked = false;
    }
  }
  return watch_report(ranks);
}

}  // namespace bloomery
