#include "comm/world.h"

#include <utility>

namespace bloomery {

bool World::take(Failure failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.rank >= 0) {
    return false;
  }
  failure_ = std::move(failure);
  return true;
}

void World::fail(int rank, const std::string& reason, bool mistake) noexcept {
  const Failure failure{concat("rank ", rank, " failed: ", reason), rank, mistake};
  if (take(failure) && tell_) {
    tell_(failure);
  }
  changed_.notify_all();
}

void World::learn(Failure failure) noexcept {
  take(std::move(failure));
  changed_.notify_all();
}

int World::failed_rank() const {
  const std::lock_guard lock(mutex_);
  return failure_.rank;
}

void World::throw_if_failed() const {
  if (failure_.rank >= 0) {
    throw RankFailure(failure_.text, failure_.rank, failure_.mistake);
  }
}

void World::check_failed() const {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

void World::wait(Lock& lock, int rank, const std::function<bool()>& condition,
                 const std::function<std::string()>& missing, double seconds) {
  changed_.wait_for(lock, seconds > 0 ? std::chrono::duration<double>(seconds) : timeout_,
                    [&] { return condition() || failure_.rank >= 0; });
  if (condition()) {
    return;
  }
  if (failure_.rank < 0) {
    failure_ = {missing(), rank};
    changed_.notify_all();
    if (tell_) {
      const Failure failure = failure_;
      lock.unlock();
      tell_(failure);
      lock.lock();
    }
  }
  throw_if_failed();
}

}  // namespace bloomery
