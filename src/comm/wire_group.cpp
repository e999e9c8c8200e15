#include "comm/wire_group.h"

#include <algorithm>
#include <cstring>

#include "comm/call_checks.h"

namespace bloomery {
namespace {

constexpr auto kSend = Transfer::Kind::send;
constexpr auto kReceive = Transfer::Kind::receive;

// Up to so many bytes of all ranks together everybody gets everything: one round instead of two.
constexpr std::int64_t kSmallBytes = 1 << 18;
// Bytes from all ranks that are reduced while the next ones are on their way.
constexpr std::int64_t kRoundBytes = 8 << 20;
constexpr std::int64_t kAlignment = 64;  // elements

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// More inputs than one kernel takes are reduced in turns; 16-bit sums are then rounded once a turn.
void reduce_all(Stream& stream, const std::vector<const void*>& inputs, void* output,
                const WireCall& call, std::int64_t count) {
  RankReduce work{.dtype = call.dtype, .count = count, .reduce = call.reduce};
  work.outputs[work.num_outputs++] = output;
  for (std::size_t next = 0; next < inputs.size();) {
    while (next < inputs.size() && work.num_inputs < RankReduce::kMaxRanks) {
      work.inputs[static_cast<std::size_t>(work.num_inputs++)] = inputs[next++];
    }
    launch_cpu(stream, work);
    work.inputs[0] = output;
    work.num_inputs = 1;
  }
}

}  // namespace

void WireGroup::add(Pieces& pieces, Transfer::Kind kind, int peer, const WireCall& call,
                    std::uint32_t part, const void* data, std::int64_t elements) const {
  if (peer != rank_ && elements > 0) {
    pieces.push_back({kind, world_rank(peer), call, part, const_cast<void*>(data),
                      static_cast<std::size_t>(elements) * size_of(call.dtype)});
  }
}

void WireGroup::all_reduce(const WireCall& call, void* data, Stream& stream) const {
  const std::int64_t bytes = call.count * static_cast<std::int64_t>(size_of(call.dtype));
  if (bytes * size() <= kSmallBytes) {
    return all_reduce_small(call, data, stream);
  }
  const Ranges ranges{round_up((call.count + size() - 1) / size(), kAlignment), call.count};
  std::uint32_t part = 1u << 31;  // apart from those of reduce_ranges
  Pieces last;
  // What this rank has reduced goes to all, and theirs come, with the next round.
  const auto spread = [&](Pieces& pieces, std::int64_t first, std::int64_t count) {
    for (int peer = 0; peer < size(); ++peer) {
      const auto within = [&](int rank) {
        return std::clamp(ranges.length(rank) - first, std::int64_t{0}, count);
      };
      add(pieces, kSend, peer, call, part, offset(data, ranges.begin(rank_) + first, call.dtype),
          within(rank_));
      add(pieces, kReceive, peer, call, part, offset(data, ranges.begin(peer) + first, call.dtype),
          within(peer));
    }
    ++part;
  };
  reduce_ranges(call, ranges, data, offset(data, ranges.begin(rank_), call.dtype), stream, spread);
}

void WireGroup::all_reduce_small(const WireCall& call, void* data, Stream& stream) const {
  const std::int64_t bytes = call.count * static_cast<std::int64_t>(size_of(call.dtype));
  std::vector<char> scratch(static_cast<std::size_t>(bytes * size()));
  Pieces pieces;
  std::vector<const void*> inputs;
  for (int peer = 0; peer < size(); ++peer) {
    void* const theirs = scratch.data() + bytes * peer;
    add(pieces, kSend, peer, call, 0, data, call.count);
    add(pieces, kReceive, peer, call, 0, theirs, call.count);
    inputs.push_back(peer == rank_ ? data : theirs);
  }
  wire_->move(pieces);
  reduce_all(stream, inputs, data, call, call.count);
}

void WireGroup::reduce_scatter(const WireCall& call, const void* whole, void* part,
                               Stream& stream) const {
  reduce_ranges(call, {call.count, call.count * size()}, whole, part, stream, {});
}

void WireGroup::reduce_ranges(const WireCall& call, const Ranges& ranges, const void* from,
                              void* to, Stream& stream, const Reduced& reduced) const {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t round =
      round_up(std::max<std::int64_t>(kRoundBytes / element / size(), 1), kAlignment);
  std::vector<char> scratch(
      static_cast<std::size_t>(std::min(round, ranges.even) * element * size()));
  Pieces pieces;
  std::uint32_t part = 0;
  for (std::int64_t first = 0; first < ranges.even; first += round) {
    const auto within = [&](int rank) {
      return std::clamp(ranges.length(rank) - first, std::int64_t{0}, round);
    };
    const std::int64_t mine = within(rank_);
    const void* const own = offset(from, ranges.begin(rank_) + first, call.dtype);
    std::vector<const void*> inputs;
    for (int peer = 0; peer < size(); ++peer) {
      void* const theirs = scratch.data() + std::min(round, ranges.even) * element * peer;
      add(pieces, kSend, peer, call, part, offset(from, ranges.begin(peer) + first, call.dtype),
          within(peer));
      add(pieces, kReceive, peer, call, part, theirs, mine);
      inputs.push_back(peer == rank_ ? own : theirs);
    }
    wire_->move(pieces);
    pieces.clear();
    reduce_all(stream, inputs, offset(to, first, call.dtype), call, mine);
    if (reduced) {
      reduced(pieces, first, round);
    }
    ++part;
  }
  wire_->move(pieces);
}

void WireGroup::all_gather(const WireCall& call, const void* part, void* whole) const {
  Pieces pieces;
  for (int peer = 0; peer < size(); ++peer) {
    add(pieces, kSend, peer, call, 0, part, call.count);
    add(pieces, kReceive, peer, call, 0, offset(whole, call.count * peer, call.dtype), call.count);
  }
  void* const own = offset(whole, call.count * rank_, call.dtype);
  if (own != part && call.count > 0) {
    std::memcpy(own, part, static_cast<std::size_t>(call.count) * size_of(call.dtype));
  }
  wire_->move(pieces);
}

// Large ones in two rounds: each rank gets a range from the root and passes it to the others.
void WireGroup::broadcast(const WireCall& call, void* data) const {
  Pieces pieces;
  const std::int64_t bytes = call.count * static_cast<std::int64_t>(size_of(call.dtype));
  if (size() <= 2 || bytes <= kSmallBytes) {
    for (int peer = 0; peer < size(); ++peer) {
      if (rank_ == call.root) {
        add(pieces, kSend, peer, call, 0, data, call.count);
      } else if (peer == call.root) {
        add(pieces, kReceive, peer, call, 0, data, call.count);
      }
    }
    return wire_->move(pieces);
  }
  const Ranges ranges{(call.count + size() - 1) / size(), call.count};
  const auto range = [&](int rank) { return offset(data, ranges.begin(rank), call.dtype); };
  for (int peer = 0; peer < size(); ++peer) {
    if (rank_ == call.root) {
      add(pieces, kSend, peer, call, 0, range(peer), ranges.length(peer));
    } else if (peer == call.root) {
      add(pieces, kReceive, peer, call, 0, range(rank_), ranges.length(rank_));
    }
  }
  wire_->move(pieces);
  pieces.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != call.root) {
      add(pieces, kSend, peer, call, 1, range(rank_), ranges.length(rank_));
    }
    if (rank_ != call.root) {
      add(pieces, kReceive, peer, call, 1, range(peer), ranges.length(peer));
    }
  }
  wire_->move(pieces);
}

void WireGroup::all_to_all(const WireCall& call, const void* out, void* in, const Counts& counts,
                           std::int64_t row) const {
  Pieces pieces;
  std::int64_t out_row = 0, in_row = 0;
  for (int peer = 0; peer < size(); ++peer) {
    const auto place = static_cast<std::size_t>(peer);
    const void* const from = offset(out, out_row * row, call.dtype);
    void* const to = offset(in, in_row * row, call.dtype);
    if (peer == rank_ && counts.in[place] * row > 0) {
      std::memcpy(to, from, static_cast<std::size_t>(counts.in[place] * row) * size_of(call.dtype));
    }
    // Also where no rows go: a disagreement about them would be a wait without end.
    if (peer != rank_) {
      const std::size_t size = static_cast<std::size_t>(row) * size_of(call.dtype);
      pieces.push_back({kSend, world_rank(peer), call, 0, const_cast<void*>(from),
                        static_cast<std::size_t>(counts.out[place]) * size});
      pieces.push_back({kReceive, world_rank(peer), call, 0, to,
                        static_cast<std::size_t>(counts.in[place]) * size});
    }
    out_row += counts.out[place];
    in_row += counts.in[place];
  }
  wire_->move(pieces);
}

}  // namespace bloomery
