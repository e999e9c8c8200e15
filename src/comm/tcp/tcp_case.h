// Ranks with sockets of their own, as threads of a test.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "comm/tcp/tcp.h"

namespace bloomery {

inline void run_tcp_ranks(int size,
                          const std::function<void(int, std::unique_ptr<Communicator>)>& body,
                          double timeout_seconds = 60) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ControlOptions options{.rank = rank, .size = size, .port = port};
        options.timeout_seconds = timeout_seconds;
        options.listener = rank == 0 ? listener.release() : -1;
        body(rank, make_tcp_communicator(std::make_shared<ControlPlane>(options)));
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& each : thrown) {
    if (each) {
      std::rethrow_exception(each);
    }
  }
}

}  // namespace bloomery
