#include "apps/common/processes.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "apps/bloomery.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/terminal.h"

namespace bloomery {

namespace {

// Whether the first rank made the same mistake, as all do with most of them, and says so: it has a
// moment to come to it.
bool first_rank_says(const JoinedWorld& joined, const std::string& mistake) {
  const Deadline end = seconds_from_now(1);
  while (seconds_until(end) > 0) {
    try {
      joined.control->world()->check_failed();
    } catch (const RankFailure& failure) {
      return failure.rank == 0 && std::string(failure.what()).ends_with(mistake);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Ends a process that has not left by itself some time after a rank failed: the driver of a GPU or
// a library may wait for the lost one without end.
class LastResort {
 public:
  LastResort(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)),
        rank_(rank),
        watch_([this] { watch(); }),
        reaction_(world_->when_failed([this] { set(failed_); })) {}
  ~LastResort() {
    world_->forget(reaction_);
    set(left_);
    watch_.join();
  }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

 private:
  static constexpr std::chrono::seconds kTime{10};

  void set(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }

  void watch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || left_; });
    do {  // a checkpoint that this rank writes alone is finished
      if (changed_.wait_for(lock, kTime, [&] { return left_; })) {
        return;
      }
    } while (UninterruptedWork::under_way());
    try {
      world_->check_failed();
    } catch (const std::exception& failure) {
      Log().error("rank ", rank_, " is stuck and ends at once, since ", failure.what());
    }
    std::_Exit(kFailed);
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool failed_ = false, left_ = false;
  std::thread watch_;
  const int reaction_;
};

// mpirun and its like kill all ranks when one ends with an error: who has something to tell does it
// before the others end.
void let_others_tell(const RankFailure& failure, int rank, RankProcess& process) {
  constexpr double kReportSeconds = 5;  // until the first rank knows where all stand
  constexpr std::chrono::seconds kWithoutFirst{4};
  constexpr std::chrono::milliseconds kLine{500};
  if (process.watch.first_tells()) {
    process.joined.control->wait_for_end_of_hub(kReportSeconds);
    std::this_thread::sleep_for(kLine);
  } else if (process.watch.first_is_lost() && !process.joined.control->has_lost_hub()) {
    // It is silent, which each rank finds out by itself.
    std::this_thread::sleep_for(kWithoutFirst);
  } else if (failure.rank != rank) {
    std::this_thread::sleep_for(kLine);
  }
}

int end_after(const RankFailure& failure, int rank, RankProcess& process) {
  if (const auto report = process.watch.report()) {
    throw RankFailure(concat(failure.what(), '\n', report->summary,
                             store_report(failure.what(), *report, process.report_folder)),
                      failure.rank, false);
  }
  let_others_tell(failure, rank, process);
  // Who made a mistake says it itself; of one that died somebody else must tell.
  const bool tells = process.watch.first_is_lost() || rank == (failure.rank == 0 ? 1 : 0);
  const bool speaks = failure.rank == rank || (!failure.mistake && tells);
  if (speaks && !process.watch.first_tells()) {
    throw failure;
  }
  return failure.mistake ? kBadInput : kFailed;
}

// In a catch clause. What is thrown when a rank is missing, by a stream's thread for example, is
// only an effect of that.
int end_after_own(const std::exception& error, bool mistake, int rank, RankProcess& process) {
  const World::Failure before = process.joined.control->world()->failure();
  if (before.silence) {
    return end_after(RankFailure(before.text, before.rank, false), rank, process);
  }
  if (mistake && rank != 0 && first_rank_says(process.joined, error.what())) {
    return kBadInput;
  }
  process.joined.host->abort(error.what(), mistake);
  throw;
}

int run_with_watch(const JoinedWorld& joined, int rank,
                   const std::function<int(RankProcess&)>& body) {
  ProcessWatch watch(joined.control);
  RankProcess process{joined, watch, {}};
  try {
    return body(process);
  } catch (const RankFailure& failure) {
    return end_after(failure, rank, process);
  } catch (const Error& error) {
    return end_after_own(error, true, rank, process);
  } catch (const std::exception& error) {
    return end_after_own(error, false, rank, process);
  }
}

}  // namespace

int run_joined(const StartFacts& facts, const std::function<int(RankProcess&)>& body) {
  const LogThreshold quiet(facts.rank == 0 ? least_logged() : LogLevel::error);
  std::optional<LastResort> last_resort;  // leaving may be what hangs
  std::shared_ptr<World> world;
  int code = kFinished;
  bool failed_before = false;
  {
    const JoinedWorld joined = join_world(facts);
    world = joined.control->world();
    last_resort.emplace(world, facts.rank);
    code = run_with_watch(joined, facts.rank, body);
    failed_before = world->failed();
  }
  if (facts.rank == 0 && !failed_before) {
    world->check_failed();  // a rank that did not leave
  }
  return code;
}

bool agree_on_options(HostGroup& host, const std::string& problem, const std::string& options) {
  const std::vector<std::string> problems = host.gather("problems of options", problem);
  const bool said_by_first = host.rank() != 0 && problem == problems.front();
  if (!problem.empty() && !said_by_first) {
    throw Error(problem);
  }
  if (std::ranges::any_of(problems, [](const std::string& each) { return !each.empty(); })) {
    return false;
  }
  const std::vector<std::string> all = host.gather("options", hash_text(xxh3(options)));
  const auto other = std::ranges::find_if(all, [&](const auto& each) { return each != all[0]; });
  check(other == all.end(), "rank ", other - all.begin(),
        " was given other options than rank 0: start all ranks with the same command");
  return true;
}

DeviceOptions rank_device(const DeviceChoice& choice, bool gpu_given, const StartFacts& facts,
                          HostGroup& host) {
  DeviceOptions device = choice.options();
  if (device.kind == DeviceKind::cuda && !gpu_given) {
    device.index = facts.local_rank % std::max(1, num_cuda_devices());
  }
  const int cores = fair_cores(host);
  device.num_threads = device.num_threads > 0 ? device.num_threads : cores;
  return device;
}

}  // namespace bloomery
