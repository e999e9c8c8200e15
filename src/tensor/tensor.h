// A tensor is a cheap handle: storage, dtype, shape. Row-major and contiguous; a slice is a range
// of the first dimension. Views are what kernels receive: no ownership, trivially copyable.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "device/stream.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace bloomery {

template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  DType dtype = DType::fp32;
  Shape shape;

  explicit operator bool() const { return data != nullptr; }
  std::int64_t numel() const { return shape.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype); }
  std::int64_t rows() const { return shape.rows(); }
  std::int64_t columns() const { return shape.back(); }

  template <class T>
  auto as() const {
    if constexpr (std::is_const_v<std::remove_pointer_t<Pointer>>) {
      return static_cast<const T*>(data);
    } else {
      return static_cast<T*>(data);
    }
  }
  // A template, so that compilers do not warn of a conversion of a ConstView to itself.
  template <std::same_as<const void*> Const>
  operator BasicView<Const>() const {
    return {data, dtype, shape};
  }
};
using View = BasicView<void*>;
using ConstView = BasicView<const void*>;

class Tensor {
 public:
  Tensor() = default;  // null: no storage
  // `who` is named when memory runs out: the op that asked.
  static Tensor empty(Stream& stream, DType dtype, const Shape& shape,
                      const std::source_location& who = std::source_location::current());
  static Tensor zeros(Stream& stream, DType dtype, const Shape& shape,
                      const std::source_location& who = std::source_location::current());
  // Copies host values; returns when they may be changed again.
  template <class T>
  static Tensor from_host(Stream& stream, const std::vector<T>& values, const Shape& shape) {
    check(static_cast<std::int64_t>(values.size()) == shape.numel(), "from_host: ", values.size(),
          " values for shape ", shape);
    Tensor tensor = empty(stream, dtype_of<T>, shape);
    // The driver may hold a lock while it waits to copy memory that is not pinned: nothing before
    // the copy may wait for another thread of this process.
    stream.synchronize();
    stream.copy(tensor.data(), values.data(), tensor.bytes());
    stream.synchronize();
    return tensor;
  }
  // Waits for the stream and copies back.
  template <class T>
  std::vector<T> to_host(Stream& stream) const {
    check(dtype_of<T> == dtype_, "to_host: the tensor is ", dtype_);
    std::vector<T> values(static_cast<std::size_t>(numel()));
    stream.synchronize();  // as in from_host
    stream.copy(values.data(), data(), bytes());
    stream.synchronize();
    return values;
  }

  explicit operator bool() const { return storage_ != nullptr; }
  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  Tensor slice(std::int64_t begin, std::int64_t end) const;  // of dimension 0
  Tensor reshape(const Shape& shape) const;                  // same number of elements
  // `count` elements from `first` of a one-dimensional tensor, with another shape.
  Tensor range(std::int64_t first, const Shape& shape) const;

  operator View() const { return {data_, dtype_, shape_}; }
  operator ConstView() const { return {data_, dtype_, shape_}; }

 private:
  std::shared_ptr<Storage> storage_;
  void* data_ = nullptr;
  DType dtype_ = DType::fp32;
  Shape shape_;
};

}  // namespace bloomery
