#include "checkpoint/hf/tensor_map.h"

#include <cstring>
#include <map>

#include "checkpoint/pickle/strided_copy.h"
#include "nn/adapter.h"

namespace bloomery {
namespace {

std::int64_t extent(char letter, const ModelOptions& o) {
  const SelfAttentionOptions& a = o.attention;
  switch (letter) {
    case 'v':
      return o.vocabulary.size;
    case 'p':
      return o.positions.max_length;
    case 'r':
      return o.positions.relative_buckets;
    case 'e':
    case 'w':
      return o.hidden_size;
    case 'h':
      return a.num_heads;
    case 'm':
      return a.num_groups;
    case 'g':
      return a.num_heads / a.num_groups;
    case 'd':
      return a.head_dim;
    case 'q':
      return a.num_heads * a.head_dim;
    case 'f':
      return o.mlp.ffn;
    case 's':
      return *o.segments.token_types;
    case 'b':
      return 2;
    case 'c':
      return o.task.outputs();
    case 't':
      return 3;
    case 'n':
      return o.moe.num_experts.front();
    case 'i':
      return o.moe.ffn;
    case 'u':
      return o.moe.shared_ffn;
    case '1':
      return 1;
    default:
      throw Error(concat("tensor layout: unknown letter ", letter));
  }
}

// Their dimensions, where x is `joined` long.
TensorMap::Part make_part(std::string_view theirs, std::int64_t joined,
                          const ModelOptions& options) {
  TensorMap::Part part;
  bool grouped = false;
  for (const char c : theirs) {
    if (c == '(') {
      grouped = true;
      part.their_shape.append(1);
    } else if (c == ')') {
      grouped = false;
    } else if (c != ' ') {
      part.view.append(c == 'x' ? joined : extent(c, options));
      if (grouped) {
        part.their_shape[part.their_shape.rank() - 1] *= part.view.back();
      } else {
        part.their_shape.append(part.view.back());
      }
    }
  }
  return part;
}

// How often the parts come: once, or for every expert.
std::int64_t num_repeats(const TensorRule& rule, const ModelOptions& options) {
  return rule.theirs.find('*') == rule.theirs.npos ? 1 : options.moe.num_experts.front();
}

TensorMap make_map(const TensorRule& rule, const ModelOptions& options) {
  const std::size_t arrow = rule.layout.find("->");
  check(arrow != rule.layout.npos, "tensor layout without an arrow: ", rule.layout);
  const std::string_view theirs = rule.layout.substr(0, arrow);
  std::string letters;
  for (const char c : theirs) {
    if (c != ' ' && c != '(' && c != ')') {
      letters += c;
    }
  }
  TensorMap map;
  for (const char c : rule.layout.substr(arrow + 2)) {
    if (c == ' ') {
      continue;
    }
    const std::size_t place = letters.find(c);
    check(place != letters.npos, "tensor layout with a letter from nowhere: ", rule.layout);
    map.joined = c == 'x' ? map.order.rank() : map.joined;
    map.order.append(static_cast<std::int64_t>(place));
  }
  const std::string_view parts = rule.parts.empty() ? "1" : rule.parts;
  for (std::int64_t expert = 0; expert < num_repeats(rule, options); ++expert) {
    for (const char c : parts) {
      map.parts.push_back(make_part(theirs, extent(c, options), options));
    }
  }
  check(map.order.rank() == map.parts[0].view.rank(),
        "tensor layout that loses a dimension: ", rule.layout);
  return map;
}

// The rule's name for a layer of so many, and for an expert.
std::string numbered(std::string_view pattern, std::int64_t layer, std::int64_t num_layers,
                     std::int64_t expert = 0) {
  const std::size_t place = pattern.find_first_of("#<$*");
  if (place == pattern.npos) {
    return std::string(pattern);
  }
  const char sign = pattern[place];
  const std::int64_t number = sign == '#'   ? layer
                              : sign == '<' ? layer - 1
                              : sign == '$' ? num_layers - 1
                                            : expert;
  return concat(pattern.substr(0, place), number,
                numbered(pattern.substr(place + 1), layer, num_layers, expert));
}

void set_names(TensorMap& map, const TensorRule& rule, std::int64_t layer,
               std::int64_t num_layers) {
  map.ours = numbered(rule.ours, layer, num_layers);
  std::string_view rest;
  std::int64_t expert = 0;
  for (TensorMap::Part& part : map.parts) {
    if (rest.empty()) {
      rest = rule.theirs;  // of the next expert
    }
    const std::size_t end = std::min(rest.find('|'), rest.size());
    part.theirs = numbered(rest.substr(0, end), layer, num_layers, expert);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    expert += rest.empty() ? 1 : 0;
  }
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

// Calls copy(place in the whole, place in the part, bytes) for every run of a part's elements. The
// part begins at `offset` of the joined dimension.
template <class Copy>
void for_runs(const TensorMap& map, const Shape& whole, const Shape& part, std::int64_t offset,
              std::size_t element, Copy&& copy) {
  std::size_t outer = 1, inner = element;
  for (int i = 0; i < whole.rank(); ++i) {
    (i < map.joined ? outer : inner) *= i == map.joined ? 1 : static_cast<std::size_t>(whole[i]);
  }
  const std::size_t bytes = inner * static_cast<std::size_t>(part[map.joined]);
  for (std::size_t i = 0; i < outer; ++i) {
    const std::size_t row = i * static_cast<std::size_t>(whole[map.joined]);
    copy((row + static_cast<std::size_t>(offset)) * inner, i * bytes, bytes);
  }
}

}  // namespace

Shape TensorMap::part_shape(const Part& part) const {
  Shape shape = part.view;
  for (int i = 0; i < shape.rank(); ++i) {
    shape[i] = part.view[static_cast<int>(order[i])];
  }
  return shape;
}

Shape TensorMap::our_shape() const {
  Shape shape = part_shape(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    shape[joined] += part_shape(parts[i])[joined];
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

// Whether the parts are as many numbers as the model has there; those of experts are one dimension.
bool fits(const TensorMap& map, const TensorRule& rule, const ModelOptions& options,
          const Shape& wanted) {
  return num_repeats(rule, options) > 1 ? wanted.numel() == map.our_shape().numel()
                                        : wanted == map.our_shape();
}

std::vector<TensorMap> expand(std::span<const TensorRule> rules, const ModelOptions& options) {
  const Model model(without_adapter(options), Mesh::single(), DType::fp32);
  std::map<std::string, Shape> wanted;
  for (const Parameter* parameter : model.parameters()) {
    wanted.emplace(parameter->name, parameter->box.global);
  }
  std::vector<TensorMap> maps;
  for (const TensorRule& rule : rules) {
    TensorMap map = make_map(rule, model.options());
    const bool layered = rule.ours.find('#') != rule.ours.npos;
    for (int layer = 0; layer < (layered ? Model::num_blocks(options) : 1); ++layer) {
      set_names(map, rule, layer, options.num_layers);
      const auto found = wanted.find(map.ours);
      if (found != wanted.end() && fits(map, rule, model.options(), found->second)) {
        map.shape = found->second;
        wanted.erase(found);
        maps.push_back(map);
      }
    }
  }
  if (!wanted.empty()) {
    const auto& [name, shape] = *wanted.begin();
    throw Error(concat("no rule says what becomes of ", name, " ", shape));
  }
  return maps;
}

Tensor to_ours(Stream& stream, const TensorMap& map, std::span<const Tensor> theirs) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < map.parts.size(); ++i) {
    const TensorMap::Part& part = map.parts[i];
    check(theirs[i].shape() == part.their_shape, part.theirs, " has shape ", theirs[i].shape(),
          ", not ", part.their_shape);
    check(theirs[i].dtype() == theirs[0].dtype(), part.theirs, " is ", theirs[i].dtype(), ", but ",
          map.parts[0].theirs, " is ", theirs[0].dtype(),
          "; they are one tensor here and must have one type");
    parts.push_back(map.same_order()
                        ? theirs[i].reshape(map.part_shape(part))
                        : permuted(stream, theirs[i], part.view, map.order, map.part_shape(part)));
  }
  if (parts.size() == 1) {
    return parts[0].reshape(map.shape);
  }
  Tensor whole = Tensor::empty(stream, parts[0].dtype(), map.our_shape());
  std::int64_t offset = 0;
  for (const Tensor& part : parts) {
    for_runs(map, whole.shape(), part.shape(), offset, size_of(part.dtype()),
             [&](std::size_t to, std::size_t from, std::size_t bytes) {
               std::memcpy(static_cast<std::byte*>(whole.data()) + to,
                           static_cast<const std::byte*>(part.data()) + from, bytes);
             });
    offset += part.shape()[map.joined];
  }
  return whole.reshape(map.shape);
}

std::vector<Tensor> to_theirs(Stream& stream, const TensorMap& map, const Tensor& ours) {
  check(ours.shape() == map.shape, map.ours, " has shape ", ours.shape(), ", not ", map.shape);
  Shape inverse = map.order;
  for (int i = 0; i < map.order.rank(); ++i) {
    inverse[static_cast<int>(map.order[i])] = i;
  }
  std::vector<Tensor> theirs;
  std::int64_t offset = 0;
  for (const TensorMap::Part& part : map.parts) {
    Tensor taken = ours;
    if (map.parts.size() > 1) {
      taken = Tensor::empty(stream, ours.dtype(), map.part_shape(part));
      for_runs(map, map.our_shape(), taken.shape(), offset, size_of(ours.dtype()),
               [&](std::size_t from, std::size_t to, std::size_t bytes) {
                 std::memcpy(static_cast<std::byte*>(taken.data()) + to,
                             static_cast<const std::byte*>(ours.data()) + from, bytes);
               });
      offset += taken.shape()[map.joined];
    }
    theirs.push_back(map.same_order()
                         ? taken.reshape(part.their_shape)
                         : permuted(stream, taken, taken.shape(), inverse, part.their_shape));
  }
  return theirs;
}

}  // namespace bloomery
