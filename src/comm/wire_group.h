// The collective calls over a Wire, on host memory: what WireCommunicator does in stream order.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/reduce.h"
#include "comm/wire.h"

namespace bloomery {

// One group of ranks.
class WireGroup {
 public:
  WireGroup(std::shared_ptr<Wire> wire, std::vector<int> members, int rank)
      : wire_(std::move(wire)), members_(std::move(members)), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& members() const { return members_; }  // world ranks
  Wire& wire() const { return *wire_; }

  // `stream` has the threads that add.
  void all_reduce(const WireCall& call, void* data, Stream& stream) const;
  void all_gather(const WireCall& call, const void* part, void* whole) const;
  void reduce_scatter(const WireCall& call, const void* whole, void* part, Stream& stream) const;
  void broadcast(const WireCall& call, void* data) const;
  void all_to_all(const WireCall& call, const void* out, void* in, const Counts& counts,
                  std::int64_t row) const;

 private:
  // Where the elements of this rank's range that a peer holds are, and back.
  struct Ranges {
    std::int64_t even;  // elements of each rank's range but the last
    std::int64_t count;
    std::int64_t begin(int rank) const { return std::min(count, even * rank); }
    std::int64_t length(int rank) const { return begin(rank + 1) - begin(rank); }
  };
  using Pieces = std::vector<WirePiece>;

  void all_reduce_small(const WireCall& call, void* data, Stream& stream) const;
  // Range r of all ranks' `from` is reduced into `to` of rank r. `reduced(first, count)` adds
  // pieces that go with the next ones once that much of the range is done.
  using Reduced = std::function<void(Pieces&, std::int64_t first, std::int64_t count)>;
  void reduce_ranges(const WireCall& call, const Ranges& ranges, const void* from, void* to,
                     Stream& stream, const Reduced& reduced) const;
  void add(Pieces& pieces, Transfer::Kind kind, int peer, const WireCall& call, std::uint32_t part,
           const void* data, std::int64_t elements) const;

  const std::shared_ptr<Wire> wire_;
  const std::vector<int> members_;
  const int rank_;
};

}  // namespace bloomery
