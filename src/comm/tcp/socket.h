// TCP sockets: what of them the transports need.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace bloomery {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  explicit operator bool() const { return descriptor_ >= 0; }
  void shut_down();  // wakes whoever reads from it
  void end_sending();

 private:
  int descriptor_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;
Deadline seconds_from_now(double seconds);
double seconds_until(Deadline deadline);  // 0 when it has passed

// Takes connections for `host`: on this machine alone if that is a loopback address, else on all
// addresses of this machine. Port 0: any. An Error says what hinders it.
Socket listen_at(const std::string& host, int port);
int port_of(const Socket& socket);
std::string peer_address(const Socket& socket);  // numbers, no name
bool is_loopback(const std::string& address);

// Tries until the deadline, since the other side may start later. An Error names the address and
// what hindered it last; `whose` says who is reached there.
Socket connect_to(const std::string& host, int port, Deadline deadline, const std::string& whose);
Socket accept_from(const Socket& listener);  // none: nobody is there
std::pair<Socket, Socket> socket_pair();

// A message goes out at once, and a machine that was lost is noticed within 15 s.
void set_for_ranks(const Socket& socket);
void set_blocking(const Socket& socket, bool blocking);

// Blocking. False: the other side is gone.
bool send_all(const Socket& socket, std::span<const char> bytes);
bool receive_all(const Socket& socket, std::span<char> bytes);

}  // namespace bloomery
