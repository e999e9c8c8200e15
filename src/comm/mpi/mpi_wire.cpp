#include "comm/mpi/mpi_wire.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMessage = std::size_t{1} << 30;  // bytes, of those that MPI can count

// Waits a little longer each time, since ranks may share cores with those they wait for.
class Patience {
 public:
  void wait() {
    if (++turns_ < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(turns_ < 1000 ? 20 : 200));
    }
  }

 private:
  int turns_ = 0;
};

class MpiWire final : public Wire {
 public:
  MpiWire(std::shared_ptr<MpiLibrary> mpi, std::shared_ptr<World> world, int rank)
      : mpi_(std::move(mpi)), world_(std::move(world)), rank_(rank) {
    while (tag_bits_ < 30 && (1 << (tag_bits_ + 1)) - 1 <= mpi_->largest_tag()) {
      ++tag_bits_;
    }
  }

  void move(std::span<const WirePiece> pieces) override {
    world_->check_failed();
    std::vector<Started> started = start(pieces);
    const Clock::time_point begin = Clock::now();
    Clock::time_point looked = begin;
    Patience patience;
    while (!started.empty()) {
      drop_done(started);
      const Clock::time_point now = Clock::now();
      if (!started.empty() && now - looked > std::chrono::milliseconds(50)) {
        looked = now;
        world_->check_failed();
        if (std::chrono::duration<double>(now - begin).count() > world_->timeout_seconds()) {
          world_->fail_waiting(rank_, waited_text(started));
          world_->check_failed();
        }
      }
      patience.wait();
    }
  }

 private:
  struct Started {
    MpiLibrary::Request request;
    const WirePiece* piece;
  };

  // Messages of one tag between two ranks meet in their order, so that a tag must be one message's
  // among those that can be under way at once: rounds of a call follow each other, and calls of a
  // group are never thousands apart.
  int tag(const WirePiece& piece) const {
    constexpr int kPartBits = 6, kGroupBits = 5;
    const std::uint64_t part = (piece.part % 32) * 2 + (piece.part >> 31);
    const std::uint64_t exchange = piece.call.name == WireCall::Name::exchange ? 1 : 0;
    const int number_bits = std::max(1, tag_bits_ - kPartBits - kGroupBits - 1);
    std::uint64_t tag = piece.call.number % (std::uint64_t{1} << number_bits);
    tag = tag << kPartBits | part;
    tag = tag << kGroupBits | piece.call.group % (1u << kGroupBits);
    return static_cast<int>((tag << 1 | exchange) & ((std::uint64_t{1} << tag_bits_) - 1));
  }

  std::vector<Started> start(std::span<const WirePiece> pieces) {
    std::vector<Started> started;
    const std::lock_guard lock(mutex_);
    for (const WirePiece& piece : pieces) {
      for (std::size_t at = 0; at == 0 || at < piece.bytes; at += kMessage) {
        char* const data = static_cast<char*>(piece.data) + at;
        const std::size_t bytes = std::min(kMessage, piece.bytes - at);
        started.push_back({piece.kind == Transfer::Kind::send
                               ? mpi_->send(data, bytes, piece.peer, tag(piece))
                               : mpi_->receive(data, bytes, piece.peer, tag(piece)),
                           &piece});
      }
    }
    return started;
  }

  void drop_done(std::vector<Started>& started) {
    const std::lock_guard lock(mutex_);
    std::erase_if(started, [this](Started& each) { return mpi_->done(each.request); });
  }

  std::string waited_text(const std::vector<Started>& started) const {
    std::set<int> peers;
    for (const Started& each : started) {
      peers.insert(each.piece->peer);
    }
    std::string list;
    for (const int peer : peers) {
      list += concat(list.empty() ? "" : ", ", peer);
    }
    return concat("rank ", rank_, " waited ", world_->timeout_seconds(), " s in ",
                  started.front().piece->call.text(), " for rank(s) ", list,
                  ", which did not come: all ranks of a group must make the same calls");
  }

  const std::shared_ptr<MpiLibrary> mpi_;
  const std::shared_ptr<World> world_;
  const int rank_;
  std::mutex mutex_;  // MPI is called by one thread at a time
  int tag_bits_ = 15;
};

}  // namespace

std::unique_ptr<Wire> make_mpi_wire(std::shared_ptr<MpiLibrary> mpi, std::shared_ptr<World> world,
                                    int rank) {
  return std::make_unique<MpiWire>(std::move(mpi), std::move(world), rank);
}

std::string mpi_broadcast(MpiLibrary& mpi, const std::string& text) {
  constexpr std::size_t kBytes = 512;
  constexpr int kTag = 1;
  std::string fixed = text;
  fixed.resize(kBytes, '\0');
  std::vector<MpiLibrary::Request> requests;
  if (mpi.rank() == 0) {
    for (int peer = 1; peer < mpi.size(); ++peer) {
      requests.push_back(mpi.send(fixed.data(), kBytes, peer, kTag));
    }
  } else {
    requests.push_back(mpi.receive(fixed.data(), kBytes, 0, kTag));
  }
  for (Patience patience; !requests.empty(); patience.wait()) {
    std::erase_if(requests, [&](MpiLibrary::Request& each) { return mpi.done(each); });
  }
  return fixed.c_str();
}

}  // namespace bloomery
