#include "comm/tcp/lobby.h"

#include <sys/socket.h>

#include <cerrno>

namespace bloomery {
namespace {

constexpr std::size_t kMostGuests = 512;
constexpr double kPauseSeconds = 0.2;  // without a descriptor for the next one

bool would_block(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK; }

}  // namespace

Lobby::Lobby(Socket listener, double hello_seconds)
    : listener_(std::move(listener)), hello_seconds_(hello_seconds) {
  set_blocking(listener_, false);
}

bool Lobby::takes_more() const {
  return listener_ && guests_.size() < kMostGuests && seconds_until(paused_until_) == 0;
}

void Lobby::add_waits(std::vector<pollfd>& waits) const {
  if (takes_more()) {
    waits.push_back({listener_.descriptor(), POLLIN, 0});
  }
  for (const Guest& guest : guests_) {
    waits.push_back({guest.socket.descriptor(), POLLIN, 0});
  }
}

std::vector<Lobby::Arrival> Lobby::take() {
  accept_new();
  std::vector<Arrival> arrived;
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const bool useful = hear(*guest);
    if (useful && guest->bytes == sizeof(Hello)) {
      arrived.push_back({std::move(guest->socket), guest->hello});
    }
    guest = useful && guest->socket ? std::next(guest) : guests_.erase(guest);
  }
  return arrived;
}

void Lobby::close() {
  listener_ = Socket();
  guests_.clear();
}

void Lobby::accept_new() {
  while (takes_more()) {
    Socket socket = accept_from(listener_);
    if (!socket) {
      if (!would_block(errno) && errno != ECONNABORTED && errno != EINTR) {
        paused_until_ = seconds_from_now(kPauseSeconds);  // EMFILE and its like pass
      }
      return;
    }
    set_for_ranks(socket);
    set_blocking(socket, false);
    guests_.push_back({std::move(socket), seconds_from_now(hello_seconds_), {}, 0});
  }
}

bool Lobby::hear(Guest& guest) const {
  while (guest.bytes < sizeof(Hello)) {
    const ssize_t count =
        recv(guest.socket.descriptor(), reinterpret_cast<char*>(&guest.hello) + guest.bytes,
             sizeof(Hello) - guest.bytes, 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && would_block(errno)) {
      return seconds_until(guest.deadline) > 0;
    }
    if (count <= 0) {
      return false;
    }
    guest.bytes += static_cast<std::size_t>(count);
    if (guest.bytes >= sizeof guest.hello.protocol && guest.hello.protocol != Hello::kProtocol) {
      return false;
    }
  }
  return true;
}

}  // namespace bloomery
