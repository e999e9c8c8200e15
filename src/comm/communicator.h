// One group of ranks. Calls enqueue on a stream and return; all ranks of the group make the same
// calls in the same order. Sums are formed in rank order, so the same layout gives the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

enum class Reduce : std::uint8_t { sum, max };

// One message of an exchange: `data` is sent to, or received from, `peer`.
struct Transfer {
  enum class Kind : std::uint8_t { send, receive };
  Kind kind;
  View data;
  int peer;
};

// Elements that go to and come from each rank, along dimension 0.
struct Counts {
  std::vector<std::int64_t> out, in;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void all_reduce(View data, Reduce reduce, Stream& stream) = 0;
  virtual void all_gather(ConstView part, View whole, Stream& stream) = 0;
  virtual void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) = 0;
  virtual void broadcast(View data, int root, Stream& stream) = 0;
  virtual void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) = 0;
  // Sends and receives that go together, so that opposite directions cannot wait for each other.
  virtual void exchange(std::span<const Transfer> transfers, Stream& stream) = 0;
  // Ranks with the same color form a group, ordered by key.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  virtual void barrier() = 0;  // of the host threads
  // Wakes the others with an error when this rank fails.
  virtual void abort() noexcept = 0;
};

// Size one: every call is the identity, so that no layer asks for the size.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace bloomery
