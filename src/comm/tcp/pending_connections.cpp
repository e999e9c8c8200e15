#include "comm/tcp/pending_connections.h"

#include <sys/socket.h>

#include <cerrno>

namespace bloomery {
namespace {

constexpr std::size_t kMostPending = 512;
constexpr double kPauseSeconds = 0.2;  // without a descriptor for the next one

bool would_block(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK; }

}  // namespace

PendingConnections::PendingConnections(Socket listener, double hello_seconds)
    : listener_(std::move(listener)), hello_seconds_(hello_seconds) {
  set_blocking(listener_, false);
}

bool PendingConnections::takes_more() const {
  return listener_ && pending_.size() < kMostPending && seconds_until(paused_until_) == 0;
}

void PendingConnections::add_waits(std::vector<pollfd>& waits) const {
  if (takes_more()) {
    waits.push_back({listener_.descriptor(), POLLIN, 0});
  }
  for (const Pending& each : pending_) {
    waits.push_back({each.socket.descriptor(), POLLIN, 0});
  }
}

std::vector<PendingConnections::Arrival> PendingConnections::take() {
  accept_new();
  std::vector<Arrival> arrived;
  for (auto each = pending_.begin(); each != pending_.end();) {
    const bool useful = read_hello(*each);
    if (useful && each->bytes == sizeof(Hello)) {
      arrived.push_back({std::move(each->socket), each->hello});
    }
    each = useful && each->socket ? std::next(each) : pending_.erase(each);
  }
  return arrived;
}

void PendingConnections::close() {
  listener_ = Socket();
  pending_.clear();
}

void PendingConnections::accept_new() {
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
    pending_.push_back({std::move(socket), seconds_from_now(hello_seconds_), {}, 0});
  }
}

bool PendingConnections::read_hello(Pending& from) const {
  while (from.bytes < sizeof(Hello)) {
    const ssize_t count =
        recv(from.socket.descriptor(), reinterpret_cast<char*>(&from.hello) + from.bytes,
             sizeof(Hello) - from.bytes, 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && would_block(errno)) {
      return seconds_until(from.deadline) > 0;
    }
    if (count <= 0) {
      return false;
    }
    from.bytes += static_cast<std::size_t>(count);
    if (from.bytes >= sizeof from.hello.protocol && from.hello.protocol != Hello::kProtocol) {
      return false;
    }
  }
  return true;
}

}  // namespace bloomery
