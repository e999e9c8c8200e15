// The ranks as a grid of named axes, with the communicators of its lines, planes and so on. All of
// them are made with the mesh, so that no later call is collective by surprise.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/layout.h"

namespace bloomery {

class Mesh {
 public:
  // Collective over `world`, whose size must be the product of the degrees.
  Mesh(const MeshDegrees& degrees, std::unique_ptr<Communicator> world);
  static Mesh single();  // one rank

  Communicator& world() { return *world_; }
  HostGroup& host() { return world_->host(); }  // of all ranks
  // The ranks that differ from this one along this axis only.
  Communicator& axis(Axis axis) { return axes(axis_bit(axis)); }
  // The same for a product of axes: each axis, all of them, and the products listed in mesh.cpp. An
  // Error for others.
  Communicator& axes(AxisSet set);
  // Of the replica axes (comm/axes.h): second and third communicators of the same ranks, so that
  // sums of gradients and gathers of values may run beside each other and beside axes().
  Communicator& reductions(AxisSet set);
  Communicator& gathers(AxisSet set);

  const MeshDegrees& degrees() const { return degrees_; }
  int degree(Axis axis) const { return degrees_.degree(axis); }
  bool divides_tokens() const { return degrees_.sequence_parallel && degrees_.tensor > 1; }
  int size(AxisSet set) const;  // number of ranks in axes(set)
  int coordinate(Axis axis) const { return index(axis_bit(axis)); }
  int index(AxisSet set) const;  // this rank's place among them
  std::string place() const;     // "tensor 1/2, data 0/4", for messages

 private:
  AxisSet without_trivial(AxisSet set) const;  // axes of degree 1
  std::unique_ptr<Communicator> make_group(AxisSet set);

  using Groups = std::map<AxisSet, std::unique_ptr<Communicator>>;
  static Communicator& find(const Groups& groups, AxisSet set, const char* what);

  MeshDegrees degrees_;
  std::unique_ptr<Communicator> world_, self_;
  Groups groups_, reductions_, gathers_;  // by sets without trivial axes
};

}  // namespace bloomery
