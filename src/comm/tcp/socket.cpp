#include "comm/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "base/error.h"

namespace bloomery {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null, and the reason, where a name is unknown.
Addresses resolve(const char* host, int port, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = host == nullptr ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    problem = gai_strerror(failed);
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

void set(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.descriptor(), level, option, &value, sizeof value);  // a help, no need
}

Socket try_listen(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) {
    set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  const bool good = socket && bind(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0 &&
                    listen(socket.descriptor(), SOMAXCONN) == 0;
  return good ? std::move(socket) : Socket();
}

// errno says why there is none.
Socket try_connect(const addrinfo& address, Deadline deadline) {
  Socket socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return {};
  }
  if (connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) {
      return {};
    }
    pollfd wait{socket.descriptor(), POLLOUT, 0};
    const int milliseconds =
        static_cast<int>(std::clamp(seconds_until(deadline) * 1000, 1.0, 10'000.0));
    int problem = ETIMEDOUT;
    socklen_t size = sizeof problem;
    if (poll(&wait, 1, milliseconds) == 1) {
      getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    if (problem != 0) {
      errno = problem;
      return {};
    }
  }
  set_blocking(socket, true);
  return socket;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

void Socket::shut_down() { shutdown(descriptor_, SHUT_RDWR); }

void Socket::end_sending() { shutdown(descriptor_, SHUT_WR); }

Deadline seconds_from_now(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_until(Deadline deadline) {
  return std::max(
      0.0, std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count());
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.") ||
         address.starts_with("::ffff:127.");
}

Socket listen_at(const std::string& host, int port) {
  std::string problem;
  const Addresses addresses = resolve(is_loopback(host) ? host.c_str() : nullptr, port, problem);
  errno = 0;
  // Of an IPv6 socket for all addresses IPv4 is a part, so that it goes first.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family == family) {
        if (Socket socket = try_listen(*each)) {
          return socket;
        }
      }
    }
  }
  throw Error(concat("rank 0 cannot take connections at ", host, " port ", port, ": ",
                     problem.empty() ? std::strerror(errno) : problem,
                     errno == EADDRINUSE ? "; give another MASTER_PORT" : ""));
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = "";
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket.descriptor(), generic, &size) == 0) {
    getnameinfo(generic, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  }
  const std::string name = text;
  const std::string mapped = "::ffff:";  // IPv4 on an IPv6 socket
  return name.starts_with(mapped) ? name.substr(mapped.size()) : name;
}

Socket connect_to(const std::string& host, int port, Deadline deadline, const std::string& whose) {
  std::string problem;
  double pause_ms = 5;
  do {
    const Addresses addresses = resolve(host.c_str(), port, problem);
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      if (Socket socket = try_connect(*each, deadline)) {
        return socket;
      }
      problem = std::strerror(errno);
    }
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause_ms));
    pause_ms = std::min(pause_ms * 1.5, 500.0);
  } while (seconds_until(deadline) > 0);
  throw Error(concat("could not reach ", whose, " at ", host, " port ", port, ": ", problem,
                     "; does it run, and does no firewall stand between?"));
}

Socket accept_from(const Socket& listener) {
  return Socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
}

std::pair<Socket, Socket> socket_pair() {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
        "no pair of sockets: ", std::strerror(errno));
  return {Socket(ends[0]), Socket(ends[1])};
}

void set_for_ranks(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000);
}

void set_blocking(const Socket& socket, bool blocking) {
  const int flags = fcntl(socket.descriptor(), F_GETFL);
  fcntl(socket.descriptor(), F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

bool send_all(const Socket& socket, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(const Socket& socket, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t received = recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EINTR) {
      continue;
    }
    if (received <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

}  // namespace bloomery
