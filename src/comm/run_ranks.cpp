#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "comm/rendezvous.h"
#include "comm/threads.h"

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
  std::vector<std::exception_ptr> thrown(num_ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank, make_thread_communicator(group, rank));
      } catch (...) {
        thrown[rank] = std::current_exception();
        group->world()->fail(rank, reason_of(thrown[rank]));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  rethrow_first(thrown, group->world()->failed_rank());
}

}  // namespace bloomery
