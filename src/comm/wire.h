// Bytes between ranks that are processes: what a transport over TCP or MPI has to bring, so that
// WireCommunicator makes a Communicator of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.h"

namespace bloomery {

// A call of a communicator as all ranks that take part must make it, and which one it is.
struct WireCall {
  enum class Name : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    all_to_all,
    exchange,
  };
  Name name = Name::exchange;
  Reduce reduce = Reduce::sum;
  DType dtype = DType::fp32;
  std::int32_t root = 0;
  std::int64_t count = 0;    // elements
  std::uint32_t group = 0;   // no two groups that share two ranks have the same
  std::uint64_t number = 0;  // of the group's collective calls, or of a pair's exchanges

  std::string text() const;  // "all_reduce sum of 7 fp32"
  bool same(const WireCall& other) const;
};

// One message of a call: from or to world rank `peer`.
struct WirePiece {
  Transfer::Kind kind;
  int peer;
  WireCall call;
  std::uint32_t part;  // which message of the call between these two ranks
  void* data;
  std::size_t bytes;
};

class Wire {
 public:
  virtual ~Wire() = default;
  // Moves the pieces and returns when all their memory may be used again. Several threads may do so
  // at once: pieces meet by group, number and part. Throws a RankFailure when the world fails, and
  // fails it after its timeout.
  virtual void move(std::span<const WirePiece> pieces) = 0;
};

}  // namespace bloomery
