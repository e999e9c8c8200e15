#include "comm/mesh.h"

#include "comm/watch/recorded.h"

namespace bloomery {
namespace {

constexpr Axis kGrid[kNumGridAxes] = {Axis::tensor, Axis::ulysses,     Axis::ring,
                                      Axis::expert, Axis::expert_data, Axis::pipeline};

// Products of axes that something is summed over: gradients; gradient norms, of parameters held
// whole and sharded; losses.
constexpr AxisSet kProducts[] = {
    kReplicaAxes,
    kExpertReplicaAxes,
    axis_set(Axis::tensor, Axis::pipeline),
    axis_set(Axis::tensor, Axis::pipeline, Axis::expert),
    axis_set(Axis::data, Axis::context, Axis::pipeline),
};

// "data x context"
std::string text(AxisSet set) {
  constexpr const char* kNames[kNumGridAxes] = {"tensor", "context", "ring",
                                                "expert", "data",    "pipeline"};
  std::string text;
  for (std::size_t i = 0; i < kNumGridAxes; ++i) {
    if ((set & axis_bit(kGrid[i])) != 0) {
      text += concat(text.empty() ? "" : " x ", kNames[i]);
    }
  }
  return text;
}

}  // namespace

int MeshDegrees::degree(Axis axis) const {
  switch (axis) {
    case Axis::tensor:
      return tensor;
    case Axis::ulysses:
      return context / ring;
    case Axis::ring:
      return ring;
    case Axis::context:
      return context;
    case Axis::expert:
      return expert;
    case Axis::expert_data:
      return data / expert;
    case Axis::pipeline:
      return pipeline;
    case Axis::data:
      return data;
  }
  return 1;
}

Mesh::Mesh(const MeshDegrees& degrees, std::unique_ptr<Communicator> world)
    : degrees_(degrees), world_(std::move(world)), self_(make_self_communicator()) {
  for (const int degree : {degrees.tensor, degrees.context, degrees.data, degrees.pipeline,
                           degrees.expert, degrees.ring}) {
    check(degree >= 1, "a parallel degree must be at least 1");
  }
  check(degrees.data % degrees.expert == 0, degrees.data,
        " data-parallel ranks cannot be divided among ", degrees.expert, " expert-parallel ones");
  check(degrees.context % degrees.ring == 0, degrees.context,
        " ranks that divide sequences cannot form rings of ", degrees.ring);
  check(degrees_.num_ranks() == world_->size(), "tensor ", degrees_.tensor, " x context ",
        degrees_.context, " x data ", degrees_.data, " x pipeline ", degrees_.pipeline, " = ",
        degrees_.num_ranks(), " ranks, but ", world_->size(), " were started");
  const auto add = [this](Groups& groups, AxisSet set, const char* use = "ranks along ") {
    set = without_trivial(set);
    if (size(set) > 1 && !groups.contains(set)) {
      groups[set] = make_group(set);
      name_group(*groups[set], concat(use, text(set)));
    }
  };
  for (const Axis axis : kGrid) {
    add(groups_, axis_bit(axis));
  }
  for (const Axis product : {Axis::context, Axis::data}) {
    add(groups_, axis_bit(product));
  }
  for (const AxisSet set : kProducts) {
    add(groups_, set);
  }
  for (const AxisSet set : {kReplicaAxes, kExpertReplicaAxes, kTokenReplicaAxes}) {
    add(reductions_, set, "sums of gradients along ");
    add(gathers_, set, "gathers of values along ");
  }
}

Mesh Mesh::single() { return Mesh({}, make_self_communicator()); }

AxisSet Mesh::without_trivial(AxisSet set) const {
  for (const Axis axis : kGrid) {
    set &= degree(axis) > 1 ? ~AxisSet{0} : ~axis_bit(axis);
  }
  return set;
}

int Mesh::size(AxisSet set) const {
  int size = 1;
  for (const Axis axis : kGrid) {
    size *= (set & axis_bit(axis)) != 0 ? degree(axis) : 1;
  }
  return size;
}

int Mesh::index(AxisSet set) const {
  int rest = world_->rank(), index = 0, stride = 1;
  for (const Axis axis : kGrid) {
    if ((set & axis_bit(axis)) != 0) {
      index += rest % degree(axis) * stride;
      stride *= degree(axis);
    }
    rest /= degree(axis);
  }
  return index;
}

std::unique_ptr<Communicator> Mesh::make_group(AxisSet set) {
  return world_->abstract() ? make_abstract_communicator(index(set), size(set))
                            : world_->split(index(kAllAxes & ~set), index(set));
}

Communicator& Mesh::find(const Groups& groups, AxisSet set, const char* what) {
  const auto found = groups.find(set);
  check(found != groups.end(), "mesh: no communicator for ", what, " over the axes ", set,
        "; list the product in mesh.cpp");
  return *found->second;
}

Communicator& Mesh::axes(AxisSet set) {
  set = without_trivial(set);
  return size(set) == 1                ? *self_
         : size(set) == world_->size() ? *world_
                                       : find(groups_, set, "calls");
}

Communicator& Mesh::reductions(AxisSet set) {
  set = without_trivial(set);
  return size(set) == 1 ? *self_ : find(reductions_, set, "reductions");
}

Communicator& Mesh::gathers(AxisSet set) {
  set = without_trivial(set);
  return size(set) == 1 ? *self_ : find(gathers_, set, "gathers");
}

std::string Mesh::place() const {
  constexpr std::pair<Axis, const char*> kNames[] = {{Axis::tensor, "tensor"},
                                                     {Axis::context, "context"},
                                                     {Axis::data, "data"},
                                                     {Axis::pipeline, "pipeline"}};
  std::string text;
  for (const auto& [axis, name] : kNames) {
    if (degree(axis) > 1) {
      text += concat(text.empty() ? "" : ", ", name, " ", coordinate(axis), "/", degree(axis));
    }
  }
  return text.empty() ? "one rank" : text;
}

}  // namespace bloomery
