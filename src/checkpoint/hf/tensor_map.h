// How the tensors of another program's model become ours and back: a table of names and layouts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpt.h"
#include "tensor/tensor.h"

namespace bloomery {

// One row. '#' in the names stands for the number of the block. The layout says their dimensions,
// then ours, in letters: v vocabulary, p positions, e hidden size, h heads, d channels of a head,
// q those of all heads, f feed-forward size, t the three of query, key and value; one of their
// dimensions that is made of several is in parentheses, slowest first. "e (t h d) -> h t d e" is
// GPT-2's fused, transposed QKV weight.
struct TensorRule {
  std::string_view ours, theirs, layout;
};

// A row for the sizes of one model.
struct TensorMap {
  std::string ours, theirs;
  Shape their_shape, view;  // view: with the parentheses opened
  Shape order;              // dimension i of ours is dimension order[i] of the view

  Shape our_shape() const;
  bool same_order() const;  // nothing moves
};

// All rows of a model, in the order of the rules; those with '#' once per block.
std::vector<TensorMap> expand(std::span<const TensorRule> rules, const GptOptions& options);

// Moves one tensor, element by element: no rounding. The stream's device must be the CPU. A layout
// that moves nothing shares the storage.
Tensor to_ours(Stream& stream, const TensorMap& map, const Tensor& theirs);
Tensor to_theirs(Stream& stream, const TensorMap& map, const Tensor& ours);

}  // namespace bloomery
