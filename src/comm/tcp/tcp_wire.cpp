#include "comm/tcp/tcp_wire.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "comm/tcp/connect_all.h"
#include "comm/tcp/peer.h"

namespace bloomery {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // how often to look whether the world has failed
// A connection that is gone is explained by the control plane, which knows why, within this time.
constexpr double kExplanationSeconds = 5;

class TcpWire final : public Wire {
 public:
  TcpWire(std::shared_ptr<World> world, int rank, std::vector<Socket> sockets)
      : world_(std::move(world)), rank_(rank), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (Socket& socket : sockets) {
      peers_.emplace_back(rank, static_cast<int>(peers_.size()), std::move(socket));
    }
  }

  void move(std::span<const WirePiece> pieces) override {
    world_->check_failed();
    std::vector<Moving> moving;
    moving.reserve(pieces.size());
    int left = static_cast<int>(pieces.size());
    std::unique_lock lock(mutex_);
    try {
      check(!dead_, "the connections between the ranks have ended");
      for (const WirePiece& piece : pieces) {
        post(moving.emplace_back(Moving{piece, &left}));
      }
      flush(pieces);
      drive_until_done(lock, moving, left);
    } catch (const RankFailure&) {
      end(lock);
      throw;
    } catch (const std::exception& error) {
      world_->fail(rank_, error.what());
      end(lock);
      throw;
    }
  }

 private:
  void post(Moving& piece) {
    Peer& peer = peers_[static_cast<std::size_t>(piece.piece.peer)];
    if (piece.piece.kind == Transfer::Kind::send) {
      peer.send(piece);
    } else {
      peer.receive(piece);
    }
  }

  // Writes what goes at once; of the rest whoever drives must know.
  void flush(std::span<const WirePiece> pieces) {
    bool more = false;
    for (const WirePiece& piece : pieces) {
      Peer& peer = peers_[static_cast<std::size_t>(piece.peer)];
      peer.write();
      more = more || peer.wants_to_write();
    }
    if (more && driving_) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
    }
  }

  void drive_until_done(std::unique_lock<std::mutex>& lock, const std::vector<Moving>& moving,
                        const int& left) {
    const Deadline deadline = seconds_from_now(world_->timeout_seconds());
    Deadline explained{};
    while (left > 0) {
      world_->check_failed();
      check(!dead_, "the connections between the ranks have ended");
      if (driving_) {
        changed_.wait_for(lock, kLook);
      } else {
        drive(lock);
      }
      const std::string lost = left > 0 ? lost_peers(moving) : "";
      if (!lost.empty()) {
        explained = explained == Deadline{} ? seconds_from_now(kExplanationSeconds) : explained;
        check(seconds_until(explained) > 0, "the connection to rank(s) ", lost, " was lost in ",
              moving.front().piece.call.text());
      }
      if (left > 0 && seconds_until(deadline) == 0) {
        world_->fail_waiting(
            rank_, concat("rank ", rank_, " waited ", world_->timeout_seconds(), " s in ",
                          moving.front().piece.call.text(), " for rank(s) ", waited_for(moving),
                          ", which did not come: all ranks of a group must make "
                          "the same calls"));
      }
    }
  }

  // One round for all threads: waits for sockets without the lock.
  void drive(std::unique_lock<std::mutex>& lock) {
    std::vector<pollfd> waits{{wake_.descriptor(), POLLIN, 0}};
    for (const Peer& peer : peers_) {
      const auto events = static_cast<short>(peer.wants_to_write() ? POLLIN | POLLOUT : POLLIN);
      waits.push_back({peer.descriptor(), events, 0});
    }
    driving_ = true;
    lock.unlock();
    poll(waits.data(), waits.size(), static_cast<int>(kLook.count()));
    lock.lock();
    driving_ = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = ::read(wake_.descriptor(), &count, sizeof count);
    for (std::size_t i = 1; i < waits.size() && !dead_; ++i) {
      Peer& peer = peers_[i - 1];
      if ((waits[i].revents & ~POLLOUT) != 0) {
        peer.read();
      }
      if (peer.wants_to_write()) {
        peer.write();
      }
    }
    changed_.notify_all();
  }

  static std::string list(const std::set<int>& ranks) {
    std::string text;
    for (const int rank : ranks) {
      text += concat(text.empty() ? "" : ", ", rank);
    }
    return text;
  }

  std::string waited_for(const std::vector<Moving>& moving) const {
    std::set<int> ranks;
    for (const Moving& each : moving) {
      if (!each.done) {
        ranks.insert(each.piece.peer);
      }
    }
    return list(ranks);
  }

  std::string lost_peers(const std::vector<Moving>& moving) const {
    std::set<int> ranks;
    for (const Moving& each : moving) {
      const Peer& peer = peers_[static_cast<std::size_t>(each.piece.peer)];
      if (!each.done && peer.gone()) {
        ranks.insert(each.piece.peer);
      }
    }
    return list(ranks);
  }

  // After a failure no piece may be touched any more: their memory is about to go.
  void end(std::unique_lock<std::mutex>& lock) {
    dead_ = true;
    lock.unlock();
    changed_.notify_all();
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  const Socket wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // by rank
  bool driving_ = false;     // a thread waits for the sockets
  bool dead_ = false;
};

}  // namespace

std::unique_ptr<Wire> make_tcp_wire(const ControlPlane& control, HostGroup& host) {
  return std::make_unique<TcpWire>(control.world(), control.rank(), connect_all(control, host));
}

}  // namespace bloomery
