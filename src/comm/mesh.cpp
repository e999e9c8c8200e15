#include "comm/mesh.h"

namespace bloomery {

int MeshDegrees::degree(Axis axis) const {
  switch (axis) {
    case Axis::tensor:
      return tensor;
    case Axis::context:
      return context;
    case Axis::data:
      return data;
    case Axis::pipeline:
      return pipeline;
  }
  return 1;
}

Mesh::Mesh(const MeshDegrees& degrees, std::unique_ptr<Communicator> world)
    : degrees_(degrees), world_(std::move(world)) {
  for (int i = 0; i < kNumAxes; ++i) {
    check(degrees_.degree(static_cast<Axis>(i)) >= 1, "a parallel degree must be at least 1");
  }
  check(degrees_.num_ranks() == world_->size(), "tensor ", degrees_.tensor, " x context ",
        degrees_.context, " x data ", degrees_.data, " x pipeline ", degrees_.pipeline, " = ",
        degrees_.num_ranks(), " ranks, but ", world_->size(), " were started");
  for (int i = 0; i < kNumAxes; ++i) {
    axes(axis_bit(static_cast<Axis>(i)));
  }
}

Mesh Mesh::single() { return Mesh({}, make_self_communicator()); }

int Mesh::coordinate(Axis axis) const {
  int rank = world_->rank();
  for (int i = 0; i < static_cast<int>(axis); ++i) {
    rank /= degrees_.degree(static_cast<Axis>(i));
  }
  return rank % degrees_.degree(axis);
}

Communicator& Mesh::axes(std::uint32_t axis_set) {
  std::unique_ptr<Communicator>& group = groups_[axis_set];
  if (!group) {
    int color = 0, key = 0, size = 1;
    for (int i = kNumAxes - 1; i >= 0; --i) {
      const auto axis = static_cast<Axis>(i);
      const bool inside = (axis_set & axis_bit(axis)) != 0;
      int& index = inside ? key : color;
      index = index * degrees_.degree(axis) + coordinate(axis);
      size *= inside ? degrees_.degree(axis) : 1;
    }
    group = size == 1 ? make_self_communicator() : world_->split(color, key);
  }
  return *group;
}

std::string Mesh::place() const {
  constexpr const char* kNames[] = {"tensor", "context", "data", "pipeline"};
  std::string text;
  for (int i = 0; i < kNumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (degree(axis) > 1) {
      text += concat(text.empty() ? "" : ", ", kNames[i], " ", coordinate(axis), "/", degree(axis));
    }
  }
  return text.empty() ? "one rank" : text;
}

}  // namespace bloomery
