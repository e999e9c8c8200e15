#include "checkpoint/pickle/torch_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

using Kind = PickleNode::Kind;

constexpr std::string_view kDicts[] = {"collections OrderedDict", "collections defaultdict",
                                       "builtins dict", "__builtin__ dict"};

std::string key_text(const PickleNode& key) {
  return key.kind == Kind::integer || key.kind == Kind::boolean ? std::to_string(key.integer)
                                                                : std::string(key.text);
}

}  // namespace

std::string_view TorchValue::class_name() const {
  return kind() == Kind::call ? object_->pickle()[node().children[0]].text : std::string_view();
}

bool TorchValue::is_dict() const {
  return kind() == Kind::dict || std::ranges::find(kDicts, class_name()) != std::end(kDicts);
}

bool TorchValue::is_sequence() const {
  return kind() == Kind::list || kind() == Kind::tuple || class_name() == "torch Size";
}

TorchValue TorchValue::child(std::uint32_t index, std::string_view name) const {
  return {*object_, index, path_ == "its object" ? std::string(name) : concat(path_, ".", name)};
}

std::vector<TorchValue::Item> TorchValue::items() const {
  require(is_dict(), "is no dict but a ", bloomery::name(kind()));
  std::vector<Item> items;
  const std::vector<std::uint32_t>& children = node().children;
  for (std::size_t i = kind() == Kind::call ? 2 : 0; i + 1 < children.size(); i += 2) {
    std::string key = key_text(object_->pickle()[children[i]]);
    TorchValue value = child(children[i + 1], key);
    items.push_back({std::move(key), std::move(value)});
  }
  return items;
}

std::vector<TorchValue> TorchValue::elements() const {
  require(is_sequence(), "is no list but a ", bloomery::name(kind()));
  const PickleNode* list = &node();
  if (kind() == Kind::call) {  // torch.Size((2, 3))
    const PickleNode& arguments = object_->pickle()[list->children[1]];
    require(arguments.children.size() == 1, "is no shape");
    list = &object_->pickle()[arguments.children[0]];
  }
  std::vector<TorchValue> elements;
  for (std::size_t i = 0; i < list->children.size(); ++i) {
    elements.push_back(child(list->children[i], std::to_string(i)));
  }
  return elements;
}

std::optional<TorchValue> TorchValue::attributes() const {
  return kind() == Kind::call && node().state != 0
             ? std::optional(TorchValue(*object_, node().state, path_))
             : std::nullopt;
}

std::optional<TorchValue> TorchValue::find(std::string_view key) const {
  const std::optional<TorchValue> state = is_dict() ? std::optional(*this) : attributes();
  if (!state || !state->is_dict()) {
    return std::nullopt;
  }
  const std::vector<std::uint32_t>& children = state->node().children;
  std::optional<TorchValue> found;  // the last one counts, as in Python
  for (std::size_t i = state->kind() == Kind::call ? 2 : 0; i + 1 < children.size(); i += 2) {
    if (key_text(object_->pickle()[children[i]]) == key) {
      found = child(children[i + 1], key);
    }
  }
  return found;
}

TorchValue TorchValue::at(std::string_view key) const {
  std::optional<TorchValue> found = find(key);
  require(found.has_value(), "has no ", key);
  return *found;
}

double TorchValue::single() const {
  const TorchTensor number = tensor();
  const auto dtype = number.storage.type->dtype;
  require(number.shape.numel() == 1 && dtype, "is no number");
  const std::span<const std::byte> all = object_->storages().contents(number.storage.key);
  const std::size_t width = number.storage.type->bytes;
  const std::byte* at = all.data() + static_cast<std::size_t>(number.offset) * width;
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (*dtype) {
    case DType::fp32:
      return read(0.0f);
    case DType::fp64:
      return read(0.0);
    case DType::int32:
      return read(std::int32_t{});
    case DType::int64:
      return read(std::int64_t{});
    default:
      require(false, "is a number of an unexpected type");
      return 0;
  }
}

std::int64_t TorchValue::integer() const {
  if (is_tensor()) {
    const double value = single();
    require(std::abs(value) < 0x1p53 && std::trunc(value) == value, "is no whole number");
    return static_cast<std::int64_t>(value);
  }
  if (kind() == Kind::real) {  // 8.0, where a program divided
    const double value = real();
    require(std::abs(value) < 0x1p53 && std::trunc(value) == value, "is no whole number");
    return static_cast<std::int64_t>(value);
  }
  require(kind() == Kind::integer, "is no integer but a ", bloomery::name(kind()));
  return node().integer;
}

double TorchValue::real() const {
  if (is_tensor()) {
    return single();
  }
  require(kind() == Kind::real || kind() == Kind::integer, "is no number but a ",
          bloomery::name(kind()));
  return kind() == Kind::integer ? static_cast<double>(node().integer)
                                 : std::bit_cast<double>(node().integer);
}

std::string TorchValue::text() const {
  require(kind() == Kind::text || kind() == Kind::global, "is no text but a ",
          bloomery::name(kind()));
  return std::string(node().text);
}

bool TorchValue::flag() const {
  require(kind() == Kind::boolean, "is neither True nor False but a ", bloomery::name(kind()));
  return node().integer != 0;
}

TorchTensor TorchValue::tensor() const { return object_->tensor(index_, path_); }

}  // namespace bloomery
