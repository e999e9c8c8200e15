#include "comm/world.h"

#include <chrono>
#include <utility>

namespace bloomery {

bool World::take(Failure failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.rank >= 0) {
    return false;
  }
  failure_ = std::move(failure);
  failed_ = true;
  return true;
}

void World::found(Failure failure) noexcept {
  if (take(failure) && tell_) {
    tell_(failure);
  }
  announce();
}

void World::fail(int rank, const std::string& reason, bool mistake) noexcept {
  found({concat("rank ", rank, " failed: ", reason), rank, mistake});
}

void World::fail_waiting(int rank, std::string text) noexcept {
  found({std::move(text), rank, false, true});
}

void World::learn(Failure failure) noexcept {
  take(std::move(failure));
  announce();
}

void World::announce() noexcept {
  changed_.notify_all();
  const std::lock_guard lock(reactions_mutex_);
  for (const auto& [number, react] : std::exchange(reactions_, {})) {
    react();
  }
}

int World::when_failed(std::function<void()> react) {
  const std::lock_guard lock(reactions_mutex_);
  if (failed_rank() >= 0) {
    react();
  } else {
    reactions_[next_reaction_] = std::move(react);
  }
  return next_reaction_++;
}

void World::forget(int number) {
  const std::lock_guard lock(reactions_mutex_);
  reactions_.erase(number);
}

int World::add_check(std::function<void()> check) {
  const std::lock_guard lock(checks_mutex_);
  checks_[next_check_] = std::move(check);
  return next_check_++;
}

void World::remove_check(int number) {
  const std::lock_guard lock(checks_mutex_);
  checks_.erase(number);
}

void World::run_checks() {
  const std::lock_guard lock(checks_mutex_);
  for (const auto& [number, check] : checks_) {
    check();
  }
}

World::Failure World::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
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
  changed_.wait_for(lock, std::chrono::duration<double>(seconds > 0 ? seconds : timeout_seconds()),
                    [&] { return condition() || failure_.rank >= 0; });
  if (condition()) {
    return;
  }
  if (failure_.rank < 0) {
    failure_ = {missing(), rank, false, true};  // under the lock: nobody comes between
    failed_ = true;
    const Failure failure = failure_;
    lock.unlock();
    if (tell_) {
      tell_(failure);
    }
    announce();
    lock.lock();
  }
  throw_if_failed();
}

}  // namespace bloomery
