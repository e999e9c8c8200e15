#include "checkpoint/pickle/state_dict.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = PickleNode::Kind;

constexpr TorchType kTypes[] = {
    {"torch FloatStorage", 4, DType::fp32}, {"torch BFloat16Storage", 2, DType::bf16},
    {"torch HalfStorage", 2, DType::fp16},  {"torch DoubleStorage", 8, DType::fp64},
    {"torch IntStorage", 4, DType::int32},  {"torch LongStorage", 8, DType::int64},
    {"torch ByteStorage", 1, DType::uint8}, {"torch BoolStorage", 1, std::nullopt},
    {"torch CharStorage", 1, std::nullopt}, {"torch ShortStorage", 2, std::nullopt},
};
constexpr std::string_view kOrderedDict = "collections OrderedDict";
constexpr std::string_view kTensor = "torch._utils _rebuild_tensor";
constexpr std::string_view kTensorV2 = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";
constexpr std::string_view kParameterWithState = "torch._utils _rebuild_parameter_with_state";
// A tensor with attributes: the function that makes it, its class, arguments, the attributes.
constexpr std::string_view kTyped = "torch._tensor _rebuild_from_type_v2";

std::vector<std::string_view> known_globals() {
  std::vector<std::string_view> names{
      kOrderedDict,        kTensor, kTensorV2,      kParameter,
      kParameterWithState, kTyped,  "torch Tensor", "torch.nn.parameter Parameter"};
  for (const TorchType& type : kTypes) {
    names.push_back(type.global);
  }
  return names;
}

class StateDictReader {
 public:
  StateDictReader(const Pickle& pickle, const std::string& source)
      : pickle_(pickle), source_(source) {}

  std::map<std::string, TorchTensor> read() {
    const PickleNode& root = pickle_[pickle_.root];
    const bool ordered = is_call(root, kOrderedDict);
    check(root.kind == Kind::dict || ordered, source_, ": holds a ", name(root.kind),
          ", not a state dict");
    std::map<std::string, TorchTensor> tensors;
    for (std::size_t i = ordered ? 2 : 0; i + 1 < root.children.size(); i += 2) {
      const PickleNode& key = pickle_[root.children[i]];
      check(key.kind == Kind::text, source_, ": a key of the state dict is a ", name(key.kind),
            ", not a name");
      TorchTensor tensor = read_value(root.children[i + 1], std::string(key.text));
      check(tensors.emplace(name_, std::move(tensor)).second, source_, ": the name ", name_,
            " appears twice");
    }
    return tensors;
  }

  TorchTensor read_value(std::uint32_t value, const std::string& name) {
    name_ = name;
    TorchTensor tensor = read_tensor(made_from(pickle_[value]));
    require_inside(tensor);
    return tensor;
  }

  bool is_tensor(std::uint32_t value) const {
    const PickleNode& node = pickle_[value];
    return node.kind == Kind::call &&
           std::ranges::any_of(
               std::array{kParameter, kParameterWithState, kTyped, kTensorV2, kTensor},
               [&](std::string_view callee) { return is_call(node, callee); });
  }

  TorchStorage read_reference(std::uint32_t value) {
    name_ = "a storage";
    return read_storage(pickle_[value]);
  }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, source_, ": ", name_, ": ", parts...);
  }

  bool is_call(const PickleNode& node, std::string_view callee) const {
    return node.kind == Kind::call && pickle_[node.children[0]].text == callee;
  }

  const PickleNode& item(const PickleNode& tuple, std::size_t index) const {
    require(index < tuple.children.size(), "a tensor is made from only ", tuple.children.size(),
            " values");
    return pickle_[tuple.children[index]];
  }

  // The arguments that a tensor is made from: of a parameter those of its tensor. The nesting is
  // that of torch.save, so one step each suffices.
  const PickleNode& made_from(const PickleNode& value) const {
    const PickleNode* node = &value;
    if (is_call(*node, kParameter) || is_call(*node, kParameterWithState)) {
      node = &item(pickle_[node->children[1]], 0);
    }
    if (is_call(*node, kTyped)) {
      const PickleNode& typed = pickle_[node->children[1]];
      const std::string_view maker = item(typed, 0).text;
      require((maker == kTensorV2 || maker == kTensor) && item(typed, 2).kind == Kind::tuple,
              "is a tensor of an unknown kind");
      return item(typed, 2);
    }
    require(is_call(*node, kTensorV2) || is_call(*node, kTensor), "is no tensor but a ",
            name(node->kind), "; only state dicts of tensors can be read");
    return pickle_[node->children[1]];
  }

  std::int64_t integer(const PickleNode& node, const char* what) const {
    require(node.kind == Kind::integer && node.integer >= 0, what, " is no non-negative integer");
    return node.integer;
  }

  Shape integers(const PickleNode& node, const char* what) const {
    require(node.kind == Kind::tuple, what, " is no tuple");
    require(node.children.size() <= Shape::kMaxRank, "has ", node.children.size(),
            " dimensions; at most ", Shape::kMaxRank, " are supported");
    Shape numbers;
    for (const std::uint32_t child : node.children) {
      numbers.append(integer(pickle_[child], what));
    }
    return numbers;
  }

  TorchTensor read_tensor(const PickleNode& arguments) const {
    TorchTensor tensor{.storage = read_storage(item(arguments, 0)),
                       .offset = integer(item(arguments, 1), "its offset"),
                       .shape = integers(item(arguments, 2), "its shape"),
                       .strides = integers(item(arguments, 3), "its strides")};
    require(tensor.shape.rank() == tensor.strides.rank(), "shape ", tensor.shape, " and strides ",
            tensor.strides, " do not belong together");
    return tensor;
  }

  // ("storage", type, key, location, number of elements) and, in old files, a view of another one.
  TorchStorage read_storage(const PickleNode& node) const {
    require(node.kind == Kind::persistent, "its storage is a ", name(node.kind));
    const PickleNode& id = pickle_[node.children[0]];
    require(id.kind == Kind::tuple && (id.children.size() == 5 || id.children.size() == 6) &&
                pickle_[id.children[0]].text == "storage",
            "its storage has no known form");
    const auto* type = std::ranges::find(kTypes, pickle_[id.children[1]].text, &TorchType::global);
    require(type != std::end(kTypes), "its storage has no known type");
    const PickleNode& key = pickle_[id.children[2]];
    require(key.kind == Kind::text, "its storage has no name");
    require(id.children.size() == 5 || pickle_[id.children[5]].kind == Kind::none,
            "its storage is a view of another, which is not supported");
    TorchStorage storage{
        .type = type,
        .key = std::string(key.text),
        .num_elements = integer(pickle_[id.children[4]], "the size of its storage")};
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8;
    require(storage.num_elements <= kMost, "its storage has ", storage.num_elements, " elements");
    return storage;
  }

  // The last element lies in the storage, and there are no more elements than the storage has: one
  // that is repeated (stride 0) could otherwise take any amount of memory.
  void require_inside(const TorchTensor& tensor) const {
    const Shape& shape = tensor.shape;
    std::int64_t count = 1, last = tensor.offset;
    bool counted = true, empty = false;
    for (int d = 0; d < shape.rank(); ++d) {
      std::int64_t span = 0;
      empty = empty || shape[d] == 0;
      counted =
          counted && !__builtin_mul_overflow(count, shape[d], &count) &&
          (shape[d] == 0 || (!__builtin_mul_overflow(shape[d] - 1, tensor.strides[d], &span) &&
                             !__builtin_add_overflow(last, span, &last)));
    }
    require(counted, "its shape ", shape, " is impossible");
    require(empty || (last < tensor.storage.num_elements && count <= tensor.storage.num_elements),
            "shape ", shape, " with strides ", tensor.strides, " from element ", tensor.offset,
            " does not fit its storage of ", tensor.storage.num_elements, " elements");
  }

  const Pickle& pickle_;
  const std::string& source_;
  std::string name_;
};

}  // namespace

Pickle read_torch_pickle(std::span<const std::byte> input, const std::string& source,
                         bool other_globals) {
  const std::vector<std::string_view> known = known_globals();
  return read_pickle(input, source, {known, other_globals});
}

bool is_tensor(const Pickle& pickle, std::uint32_t value) {
  const std::string nowhere;
  return StateDictReader(pickle, nowhere).is_tensor(value);
}

TorchTensor read_tensor(const Pickle& pickle, std::uint32_t value, const std::string& source,
                        const std::string& name) {
  return StateDictReader(pickle, source).read_value(value, name);
}

TorchStorage read_storage(const Pickle& pickle, std::uint32_t value, const std::string& source) {
  return StateDictReader(pickle, source).read_reference(value);
}

std::map<std::string, TorchTensor> read_state_dict(const Pickle& pickle,
                                                   const std::string& source) {
  return StateDictReader(pickle, source).read();
}

}  // namespace bloomery
