// One group of ranks, for device tensors. Calls enqueue on a stream and return; all ranks of the
// group make the same collective calls in the same order. The same layout gives the same bits.
//
// Guarantees by transport. self: every call is the identity. threads: sums are formed in rank
// order, in fp32 for bf16 and fp16; a disagreement between ranks (sizes, dtypes, which call) is an
// Error on every rank that takes part; calls of one communicator may be made on several streams, in
// the same order on all ranks. tcp, mpi (processes; wire_communicator.h): sums, several streams and
// what is checked as with threads, but a disagreement ends all ranks of the start-up; on CUDA the
// host waits until a call is done. With more than 64 ranks 16-bit sums are rounded once for each 63
// of them. nccl (GPUs alone; nccl/nccl.h): small sums as with threads, large ones in NCCL's order;
// ranks that disagree are not found out but wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/host_group.h"
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

// Rows (extents of dimension 0) that go to and come from each rank.
struct Counts {
  std::vector<std::int64_t> out, in;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // In place. All dtypes but uint8 are reduced; a maximum with NaN is NaN.
  virtual void all_reduce(View data, Reduce reduce, Stream& stream) = 0;
  // The parts one after another. `part` may be this rank's place in `whole`, else they are apart;
  // the same for reduce_scatter.
  virtual void all_gather(ConstView part, View whole, Stream& stream) = 0;
  virtual void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) = 0;
  virtual void broadcast(View data, int root, Stream& stream) = 0;
  // Sends consecutive rows of `out` to ranks 0, 1, ... and stores what comes in rank order.
  virtual void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) = 0;
  // Sends and receives that go together, so that opposite directions cannot wait for each other.
  // Only the ranks named take part; the messages of a pair of ranks are matched in order.
  virtual void exchange(std::span<const Transfer> transfers, Stream& stream) = 0;
  // Ranks with the same color form a group, ordered by key, then by rank. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  virtual HostGroup& host() = 0;                   // the control plane of the same ranks
  virtual bool abstract() const { return false; }  // see make_abstract_communicator
};

// Size one: every call is the identity, so that no layer asks for the size.
std::unique_ptr<Communicator> make_self_communicator();

// One rank of a group whose others do not exist, for abstract devices: device calls do nothing, and
// of messages between hosts the others' are as this rank's own. It cannot be split; a mesh makes
// its groups without that.
std::unique_ptr<Communicator> make_abstract_communicator(int rank, int size);

}  // namespace bloomery
