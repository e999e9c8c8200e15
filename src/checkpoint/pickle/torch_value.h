// A place in an object of torch.save, to walk through it: Python's dicts, lists, numbers, texts and
// tensors. Objects of other classes are opaque, but for their attributes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/pickle/torch_object.h"

namespace bloomery {

class TorchValue {
 public:
  // The object must outlive the value.
  explicit TorchValue(const TorchObject& object)
      : TorchValue(object, object.pickle().root, "its object") {}

  const TorchObject& object() const { return *object_; }
  // "optimizer.param_groups", for messages.
  const std::string& path() const { return path_; }
  PickleNode::Kind kind() const { return node().kind; }
  bool is_none() const { return kind() == PickleNode::Kind::none; }
  bool is_tensor() const { return bloomery::is_tensor(object_->pickle(), index_); }
  bool is_dict() const;
  // Of a list, tuple or set.
  bool is_sequence() const;
  std::string_view class_name() const;  // "module name" of an opaque object, else empty

  // Each throws when the value is of another kind.
  std::int64_t integer() const;  // also of a tensor of one integer or whole number
  double real() const;           // also of an integer or a tensor of one number
  std::string text() const;
  bool flag() const;
  TorchTensor tensor() const;

  // Entries of a dict, in order. Keys that are no texts are numbers or names of globals.
  struct Item;
  std::vector<Item> items() const;
  std::vector<TorchValue> elements() const;  // of a list or tuple
  // An entry of a dict or an attribute of an object; none when it is absent.
  std::optional<TorchValue> find(std::string_view key) const;
  TorchValue at(std::string_view key) const;  // throws when it is absent
  // The attributes of an opaque object.
  std::optional<TorchValue> attributes() const;

 private:
  TorchValue(const TorchObject& object, std::uint32_t index, std::string path)
      : object_(&object), index_(index), path_(std::move(path)) {}
  const PickleNode& node() const { return object_->pickle()[index_]; }
  TorchValue child(std::uint32_t index, std::string_view name) const;
  double single() const;
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, object_->source(), ": ", path_, " ", parts...);
  }

  const TorchObject* object_;
  std::uint32_t index_;
  std::string path_;
};

struct TorchValue::Item {
  std::string key;
  TorchValue value;
};

}  // namespace bloomery
