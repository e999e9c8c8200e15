#include "comm/tcp/connect_all.h"

#include "comm/tcp/pending_connections.h"

namespace bloomery {
namespace {

constexpr double kSeconds = 60;

// Those of the ranks above this one that came within 100 ms.
std::vector<PendingConnections::Arrival> wait_for_arrivals(PendingConnections& pending) {
  std::vector<pollfd> waits;
  pending.add_waits(waits);
  poll(waits.data(), waits.size(), 100);
  return pending.take();
}

}  // namespace

std::vector<Socket> connect_all(const ControlPlane& control, HostGroup& host) {
  const int rank = host.rank(), size = host.size();
  Socket listener = listen_at(control.address(0), 0);
  Hello mine{.rank = rank, .size = size};
  mine.secret = secret_from(
      host.broadcast("secret of the wire", rank == 0 ? secret_text(random_secret()) : "", 0));
  const std::vector<std::string> ports =
      host.gather("ports of the wire", std::to_string(port_of(listener)));
  PendingConnections pending(std::move(listener));
  const Deadline deadline = seconds_from_now(kSeconds);
  std::vector<Socket> sockets(static_cast<std::size_t>(size));
  for (int peer = 0; peer < rank; ++peer) {
    const auto place = static_cast<std::size_t>(peer);
    sockets[place] =
        connect_to(control.address(peer), std::stoi(ports[place]), deadline, concat("rank ", peer));
    send_all(sockets[place], {reinterpret_cast<const char*>(&mine), sizeof mine});
  }
  for (int left = size - 1 - rank; left > 0;) {
    check(seconds_until(deadline) > 0, "rank ", rank, " waits for connections of ", left,
          " more ranks: they came to the first rank, but do not reach this one; does a firewall "
          "stand between the machines?");
    std::vector<PendingConnections::Arrival> arrivals = wait_for_arrivals(pending);
    if (arrivals.empty()) {
      control.world()->check_failed();  // those who are missing may never come
    }
    for (PendingConnections::Arrival& arrival : arrivals) {
      const Hello& hello = arrival.hello;
      if (same_secret(hello.secret, mine.secret) && hello.rank > rank && hello.rank < size &&
          !sockets[static_cast<std::size_t>(hello.rank)]) {
        sockets[static_cast<std::size_t>(hello.rank)] = std::move(arrival.socket);
        --left;
      }
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
