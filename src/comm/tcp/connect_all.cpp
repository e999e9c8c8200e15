#include "comm/tcp/connect_all.h"

#include <poll.h>
#include <sys/resource.h>

#include <random>

namespace bloomery {
namespace {

constexpr double kSeconds = 60;

// What a rank says when it connects: the secret keeps other programs, and other runs, out.
struct Hello {
  std::uint64_t secret = 0;
  std::int32_t rank = 0;
};

std::span<char> bytes_of(Hello& hello) { return {reinterpret_cast<char*>(&hello), sizeof hello}; }

// A socket per rank may be more than a process starts with.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

Socket accept_before(const Socket& listener, Deadline deadline) {
  pollfd wait{listener.descriptor(), POLLIN, 0};
  const int ready = poll(&wait, 1, static_cast<int>(seconds_until(deadline) * 1000));
  return ready == 1 ? accept_from(listener) : Socket();
}

}  // namespace

std::vector<Socket> connect_all(const ControlPlane& control, HostGroup& host) {
  allow_many_files();
  const int rank = host.rank(), size = host.size();
  const Socket listener = listen_at(control.address(0), 0);
  std::random_device random;
  const std::string secret = host.broadcast(
      "secret of the wire", std::to_string(std::uint64_t{random()} << 32 | random()), 0);
  const std::vector<std::string> ports =
      host.gather("ports of the wire", std::to_string(port_of(listener)));
  const Deadline deadline = seconds_from_now(kSeconds);
  Hello mine{std::stoull(secret), rank};
  std::vector<Socket> sockets(static_cast<std::size_t>(size));
  for (int peer = 0; peer < rank; ++peer) {
    const auto place = static_cast<std::size_t>(peer);
    sockets[place] =
        connect_to(control.address(peer), std::stoi(ports[place]), deadline, concat("rank ", peer));
    send_all(sockets[place], bytes_of(mine));
  }
  for (int left = size - 1 - rank; left > 0;) {
    Socket socket = accept_before(listener, deadline);
    check(static_cast<bool>(socket), "rank ", rank, " waits for connections of ", left,
          " more ranks: they came to the first rank, but do not reach this one; does a firewall "
          "stand between the machines?");
    Hello hello;
    if (receive_all(socket, bytes_of(hello)) && hello.secret == mine.secret && hello.rank > rank &&
        hello.rank < size && !sockets[static_cast<std::size_t>(hello.rank)]) {
      sockets[static_cast<std::size_t>(hello.rank)] = std::move(socket);
      --left;
    }
  }
  for (const Socket& socket : sockets) {
    if (socket) {
      set_for_ranks(socket);
      set_blocking(socket, false);
    }
  }
  return sockets;
}

}  // namespace bloomery
