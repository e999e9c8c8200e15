#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/stop_signals.h"
#include "comm/rendezvous.h"
#include "comm/threads.h"
#include "comm/watch/watch.h"

namespace bloomery {
namespace {

std::shared_ptr<ThreadGroup> make_world_group(int size, const ThreadOptions& options) {
  check(size >= 1, "a group of threads needs at least one rank, not ", size);
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<ThreadGroup>(std::make_shared<World>(options.timeout_seconds),
                                       std::move(ranks));
}

std::string reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

// The exception of the rank that failed first; the others only tell of it.
void rethrow_first(const std::vector<std::exception_ptr>& thrown, int failed_rank) {
  if (failed_rank >= 0 && thrown[failed_rank]) {
    std::rethrow_exception(thrown[failed_rank]);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception) {
      std::rethrow_exception(exception);
    }
  }
}

// How many ranks have ended.
class Ending {
 public:
  explicit Ending(int num_ranks) : left_(num_ranks) {}
  void add() {
    const std::lock_guard lock(mutex_);
    --left_;
    changed_.notify_all();
  }
  bool wait_for_all(double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
};

void tell_failure(const World::Failure& failure, const std::vector<FlightRecorder*>& recorders,
                  Ending& ending, const ThreadOptions& options) {
  if (failure.silence && options.when_silent) {
    std::vector<KnownRank> ranks;
    for (const FlightRecorder* const recorder : recorders) {
      ranks.push_back({recorder->status(), true, 0});
    }
    options.when_silent(failure.text, watch_report(ranks));
  }
  if (!options.when_stuck) {
    return;
  }
  while (!ending.wait_for_all(options.leave_seconds)) {
    if (!UninterruptedWork::under_way()) {  // a checkpoint that one rank writes alone is finished
      options.when_stuck(failure.text);
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size,
                                                                     const ThreadOptions& options) {
  const std::shared_ptr<ThreadGroup> group = make_world_group(size, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(make_thread_communicator(group, rank));
  }
  return communicators;
}

void run_ranks(int num_ranks,
               const std::function<void(int rank, std::unique_ptr<Communicator> world)>& body,
               const ThreadOptions& options) {
  const std::shared_ptr<ThreadGroup> group = make_world_group(num_ranks, options);
  const std::shared_ptr<World> world = group->world();
  std::vector<std::unique_ptr<FlightRecorder>> recorders;
  std::vector<FlightRecorder*> watched;
  for (int rank = 0; rank < num_ranks; ++rank) {
    recorders.push_back(std::make_unique<FlightRecorder>(rank, world));
    watched.push_back(recorders.back().get());
  }
  Ending ending(num_ranks);
  const Watch watch(world, watched, [&](bool failed) {
    if (failed) {
      tell_failure(world->failure(), watched, ending, options);
    }
  });
  std::vector<std::exception_ptr> thrown(num_ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank, record_calls(make_thread_communicator(group, rank), *watched[rank]));
      } catch (...) {
        thrown[rank] = std::current_exception();
        world->fail(rank, reason_of(thrown[rank]));
      }
      ending.add();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const World::Failure failure = world->failure();
  const auto threw = [](const std::exception_ptr& each) { return each != nullptr; };
  if (failure.silence && std::ranges::any_of(thrown, threw)) {  // effects of one cause
    throw RankFailure(failure.text, failure.rank, false);
  }
  rethrow_first(thrown, failure.rank);
}

}  // namespace bloomery
