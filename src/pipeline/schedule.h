// What one stage of a pipeline does in a step, as a list that its executor runs from front to back.
//
// A stage holds one or more chunks of the model. Chunk c of stage s is part c x stages + s of the
// whole: it gets activations from the part before it and gradients from the one behind.
// Neighbouring sends and receives are one exchange (steps()), so that stages which send to each
// other cannot wait for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery {

struct Instruction {
  enum class Work : std::uint8_t {
    forward,
    backward,         // both parts of it:
    backward_input,   // the gradients of the inputs
    backward_weight,  // and those of the weights, at any time after
    receive_activation,
    send_activation,
    receive_gradient,
    send_gradient,
  };
  Work work = Work::forward;
  std::int64_t micro_batch = 0;
  int chunk = 0;

  bool is_transfer() const { return work >= Work::receive_activation; }
  bool operator==(const Instruction&) const = default;
};
using Instructions = std::vector<Instruction>;

// What is done at once: one computation, or transfers that go together.
std::vector<std::span<const Instruction>> steps(std::span<const Instruction> list);

// The stage at the other end of a transfer.
int peer_stage(const Instruction& transfer, int stage, int num_stages);

// Forward passes alone.
Instructions forward_only(int stage, int num_stages, std::int64_t num_micro_batches);

// One forward, one backward: a stage runs ahead by as many forwards as there are stages behind it,
// then alternates, so that at most `num_stages - stage` tapes exist at a time. With one stage every
// forward is followed by its backward.
Instructions one_forward_one_backward(int stage, int num_stages, std::int64_t num_micro_batches);

// The same with backward in two parts: gradients of weights come as many micro-batches later as the
// stage has tapes to spare, up to `num_stages` in all, and so fill the time at the end in which a
// stage would only wait for others (the schedule ZB-H1).
Instructions zero_bubble(int stage, int num_stages, std::int64_t num_micro_batches);

}  // namespace bloomery
