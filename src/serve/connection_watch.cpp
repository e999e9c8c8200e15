#include "serve/connection_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

namespace bloomery {
namespace {

constexpr std::chrono::milliseconds kPeriod{50};

}  // namespace

ConnectionWatch::ConnectionWatch() : thread_([this] { watch(); }) {}

ConnectionWatch::~ConnectionWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ConnectionWatch::opened(const void* key, int socket, Clock::time_point deadline) {
  const std::lock_guard lock(mutex_);
  connections_[key] = {socket, deadline, {}};
  changed_.notify_one();
}

void ConnectionWatch::closed(const void* key) {
  const std::lock_guard lock(mutex_);
  connections_.erase(key);
}

void ConnectionWatch::expect(const void* key, std::optional<Clock::time_point> deadline) {
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(key); found != connections_.end()) {
    found->second.deadline = deadline;
  }
}

void ConnectionWatch::guard(const void* key, OnLeft on_left) {
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(key); found != connections_.end()) {
    found->second.on_left = std::move(on_left);
  }
}

void ConnectionWatch::unguard(const void* key) { guard(key, {}); }

void ConnectionWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (connections_.empty()) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, kPeriod, [&] { return end_; });
  }
}

// A socket stays open while its connection is in the map, so that a number means what it says.
void ConnectionWatch::look() {
  std::vector<OnLeft> left;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    std::vector<pollfd> sockets;
    std::vector<Connection*> guarded;
    for (auto& [key, connection] : connections_) {
      if (connection.deadline && now > *connection.deadline) {
        shutdown(connection.socket, SHUT_RDWR);
        connection.deadline.reset();
      }
      if (connection.on_left) {
        sockets.push_back({connection.socket, POLLRDHUP, 0});
        guarded.push_back(&connection);
      }
    }
    if (poll(sockets.data(), sockets.size(), 0) > 0) {
      for (std::size_t i = 0; i < sockets.size(); ++i) {
        if ((sockets[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
          left.push_back(std::exchange(guarded[i]->on_left, {}));
        }
      }
    }
  }
  for (const OnLeft& on_left : left) {
    on_left();
  }
}

}  // namespace bloomery
