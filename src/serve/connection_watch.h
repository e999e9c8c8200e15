// Connections of a server and what the HTTP library does not look at: a client that leaves while
// its answer is made, and one that sends its request a byte at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace bloomery {

class ConnectionWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using OnLeft = std::function<void()>;

  ConnectionWatch();
  ~ConnectionWatch();
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  // `key` names a connection while it is open.
  void opened(const void* key, int socket, Clock::time_point deadline);
  void closed(const void* key);
  // The connection is shut down if nothing else was said by then; none: it may last.
  void expect(const void* key, std::optional<Clock::time_point> deadline);
  // While set, `on_left` is called, once, if the other side closes; from the watch's thread.
  void guard(const void* key, OnLeft on_left);
  void unguard(const void* key);

 private:
  struct Connection {
    int socket = -1;
    std::optional<Clock::time_point> deadline;
    OnLeft on_left;
  };
  void watch();
  void look();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, Connection> connections_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace bloomery
