// Files as torch.save writes them: an object of Python's plain values and tensors, which torch.load
// opens.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace bloomery {

// A value of Python.
class PyValue {
 public:
  using List = std::vector<PyValue>;
  using Dict = std::vector<std::pair<PyValue, PyValue>>;
  struct Tuple {
    List items;
  };
  struct Ordered {  // collections.OrderedDict
    Dict items;
  };
  struct Global {  // "torch", "float16"
    std::string module, name;
  };
  struct Object {  // of a class, with attributes
    Global type;
    Dict attributes;
  };
  struct Call {  // a class called with arguments
    Global type;
    List arguments;
  };
  // Row-major. Its bytes are pieces that follow each other, each asked for when it is written.
  struct Tensor {
    using Piece = std::function<std::vector<std::byte>()>;
    DType dtype;
    Shape shape;
    std::vector<Piece> pieces;
  };
  using Variant = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict,
                               Tuple, Ordered, Global, Object, Call, Tensor>;

  PyValue() = default;  // None
  template <class T>
  PyValue(T value) : value_(std::move(value)) {}
  PyValue(int value) : value_(std::int64_t{value}) {}
  PyValue(const char* text) : value_(std::string(text)) {}
  PyValue(std::string_view text) : value_(std::string(text)) {}

  const Variant& get() const { return value_; }

 private:
  Variant value_;
};

// A tensor with one number.
PyValue::Tensor single_number(float number, const Shape& shape = Shape{});

// The file appears whole or not at all. Of the tensors' bytes one piece at a time is in memory.
void write_torch_file(const std::filesystem::path& path, const PyValue& value);

// Several files side by side: the first piece of each, then the second. So the files of ranks that
// hold parts of the same tensors ask for these parts one after another.
struct TorchFileToWrite {
  std::filesystem::path path;
  PyValue value;
};
void write_torch_files(const std::vector<TorchFileToWrite>& files);

}  // namespace bloomery
