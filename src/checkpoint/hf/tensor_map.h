// How the tensors of another program's model become ours and back: the rules of a family
// (models/family.h) for the sizes of one model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/family.h"
#include "tensor/tensor.h"

namespace bloomery {

// One tensor of ours.
struct TensorMap {
  struct Part {
    std::string theirs;
    Shape their_shape, view;  // view: with the parentheses opened
  };
  std::string ours;
  std::vector<Part> parts;  // one, or several that lie one after another along `joined` of ours
  Shape order;              // dimension i of ours is dimension order[i] of a view
  int joined = 0;
  Shape shape;  // of ours in the model: our_shape(), or its first dimension opened

  Shape our_shape() const;
  Shape part_shape(const Part& part) const;  // in the order of ours
  bool same_order() const;                   // nothing moves
};

// All tensors of the model but its adapter's, in the order of the rules. Of several rules for a
// tensor the first whose shape fits.
std::vector<TensorMap> expand(std::span<const TensorRule> rules, const ModelOptions& options);

// Moves one tensor, element by element: no rounding. The stream's device must be the CPU. A layout
// that moves nothing shares the storage. One tensor of theirs per part.
Tensor to_ours(Stream& stream, const TensorMap& map, std::span<const Tensor> theirs);
std::vector<Tensor> to_theirs(Stream& stream, const TensorMap& map, const Tensor& ours);

}  // namespace bloomery
