#include "checkpoint/hf/tensor_map.h"

#include "checkpoint/pickle/strided_copy.h"

namespace bloomery {
namespace {

std::int64_t extent(char letter, const GptOptions& o) {
  const std::int64_t head_dim = o.head_dim > 0 ? o.head_dim : o.hidden_size / o.num_heads;
  switch (letter) {
    case 'v':
      return o.vocabulary;
    case 'p':
      return o.max_positions;
    case 'e':
      return o.hidden_size;
    case 'h':
      return o.num_heads;
    case 'd':
      return head_dim;
    case 'q':
      return o.num_heads * head_dim;
    case 'f':
      return o.ffn_hidden_size > 0 ? o.ffn_hidden_size : 4 * o.hidden_size;
    case 't':
      return 3;
    default:
      throw Error(concat("tensor layout: unknown letter ", letter));
  }
}

TensorMap with_layout(std::string_view layout, const GptOptions& options) {
  const std::size_t arrow = layout.find("->");
  check(arrow != layout.npos, "tensor layout without an arrow: ", layout);
  TensorMap map;
  std::string letters;
  bool grouped = false;
  for (const char c : layout.substr(0, arrow)) {
    if (c == '(') {
      grouped = true;
      map.their_shape.append(1);
    } else if (c == ')') {
      grouped = false;
    } else if (c != ' ') {
      letters += c;
      map.view.append(extent(c, options));
      if (grouped) {
        map.their_shape[map.their_shape.rank() - 1] *= map.view.back();
      } else {
        map.their_shape.append(map.view.back());
      }
    }
  }
  for (const char c : layout.substr(arrow + 2)) {
    if (c != ' ') {
      const std::size_t place = letters.find(c);
      check(place != letters.npos, "tensor layout with a letter from nowhere: ", layout);
      map.order.append(static_cast<std::int64_t>(place));
    }
  }
  check(map.order.rank() == map.view.rank(), "tensor layout that loses a dimension: ", layout);
  return map;
}

std::string numbered(std::string_view pattern, int block) {
  const std::size_t place = pattern.find('#');
  return place == pattern.npos ? std::string(pattern)
                               : concat(pattern.substr(0, place), block, pattern.substr(place + 1));
}

// The elements of `from` viewed as `view`, in the order of `dimensions`.
Tensor permuted(Stream& stream, const Tensor& from, const Shape& view, const Shape& dimensions,
                const Shape& result) {
  check(!stream.on_cuda(), "tensors change their layout on the CPU only");
  const Shape strides = contiguous_strides(view);
  Shape extents = view, steps = view;
  for (int i = 0; i < view.rank(); ++i) {
    extents[i] = view[static_cast<int>(dimensions[i])];
    steps[i] = strides[static_cast<int>(dimensions[i])];
  }
  Tensor to = Tensor::empty(stream, from.dtype(), result);
  copy_strided(static_cast<const std::byte*>(from.data()), size_of(from.dtype()), extents, steps,
               static_cast<std::byte*>(to.data()));
  return to;
}

}  // namespace

Shape TensorMap::our_shape() const {
  Shape shape = view;
  for (int i = 0; i < view.rank(); ++i) {
    shape[i] = view[static_cast<int>(order[i])];
  }
  return shape;
}

bool TensorMap::same_order() const {
  for (int i = 0; i < order.rank(); ++i) {
    if (order[i] != i) {
      return false;
    }
  }
  return true;
}

std::vector<TensorMap> expand(std::span<const TensorRule> rules, const GptOptions& options) {
  std::vector<TensorMap> maps;
  for (const TensorRule& rule : rules) {
    TensorMap map = with_layout(rule.layout, options);
    const int count = rule.ours.find('#') == rule.ours.npos ? 1 : options.num_layers;
    for (int block = 0; block < count; ++block) {
      map.ours = numbered(rule.ours, block);
      map.theirs = numbered(rule.theirs, block);
      maps.push_back(map);
    }
  }
  return maps;
}

Tensor to_ours(Stream& stream, const TensorMap& map, const Tensor& theirs) {
  check(theirs.shape() == map.their_shape, map.theirs, " has shape ", theirs.shape(), ", not ",
        map.their_shape);
  return map.same_order() ? theirs.reshape(map.our_shape())
                          : permuted(stream, theirs, map.view, map.order, map.our_shape());
}

Tensor to_theirs(Stream& stream, const TensorMap& map, const Tensor& ours) {
  check(ours.shape() == map.our_shape(), map.ours, " has shape ", ours.shape(), ", not ",
        map.our_shape());
  if (map.same_order()) {
    return ours.reshape(map.their_shape);
  }
  Shape inverse = map.order;
  for (int i = 0; i < map.order.rank(); ++i) {
    inverse[static_cast<int>(map.order[i])] = i;
  }
  return permuted(stream, ours, map.our_shape(), inverse, map.their_shape);
}

}  // namespace bloomery
