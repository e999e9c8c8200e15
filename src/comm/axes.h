// The axes of the grid of ranks, and sets of them.
#pragma once

#include <cstdint>

namespace bloomery {

// In rank order, fastest first, as in Megatron. Two are products. `context`, the ranks that hold
// parts of the same sequences: those that exchange heads (Ulysses) are neighbours among it, and
// rings of such groups pass keys and values on. `data`: the ranks that hold different experts are
// neighbours among it.
enum class Axis : std::uint8_t {
  tensor,
  ulysses,
  ring,
  expert,
  expert_data,
  pipeline,
  context,
  data
};
inline constexpr int kNumGridAxes = 6;  // those that are no product

using AxisSet = std::uint32_t;
constexpr AxisSet axis_bit(Axis axis) {
  return axis == Axis::data      ? axis_bit(Axis::expert) | axis_bit(Axis::expert_data)
         : axis == Axis::context ? axis_bit(Axis::ulysses) | axis_bit(Axis::ring)
                                 : AxisSet{1} << static_cast<int>(axis);
}
template <class... Axes>
constexpr AxisSet axis_set(Axes... axes) {
  return (axis_bit(axes) | ... | AxisSet{0});
}

inline constexpr AxisSet kAllAxes =
    axis_set(Axis::tensor, Axis::context, Axis::data, Axis::pipeline);
// Ranks that differ along these alone hold the same dense parameters and parts of their gradients;
// of an expert's parameters the second.
inline constexpr AxisSet kReplicaAxes = axis_set(Axis::data, Axis::context);
inline constexpr AxisSet kExpertReplicaAxes = axis_set(Axis::expert_data, Axis::context);
// Of parameters that each tensor rank applies to its own tokens (sequence parallelism) or heads.
inline constexpr AxisSet kTokenReplicaAxes = kReplicaAxes | axis_set(Axis::tensor);

}  // namespace bloomery
