// The ranks as a grid of named axes. Rank order follows Megatron's: tensor fastest, then context,
// data, pipeline.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace bloomery {

enum class Axis : std::uint8_t { tensor, context, data, pipeline };
inline constexpr int kNumAxes = 4;
constexpr std::uint32_t axis_bit(Axis axis) { return 1u << static_cast<int>(axis); }

struct MeshDegrees {
  int tensor = 1, context = 1, data = 1, pipeline = 1;
  int degree(Axis axis) const;
  int num_ranks() const { return tensor * context * data * pipeline; }
};

class Mesh {
 public:
  // Collective over `world`, whose size must be the product of the degrees.
  Mesh(const MeshDegrees& degrees, std::unique_ptr<Communicator> world);
  static Mesh single();  // one rank

  Communicator& world() { return *world_; }
  // The ranks that differ from this one along this axis only.
  Communicator& axis(Axis axis) { return *groups_.at(axis_bit(axis)); }
  // The same for a product of axes. Collective over the world at first use.
  Communicator& axes(std::uint32_t axis_set);
  int degree(Axis axis) const { return degrees_.degree(axis); }
  int coordinate(Axis axis) const;
  std::string place() const;  // "tensor 1/2, data 0/4", for messages

 private:
  MeshDegrees degrees_;
  std::unique_ptr<Communicator> world_;
  std::map<std::uint32_t, std::unique_ptr<Communicator>> groups_;
};

}  // namespace bloomery
