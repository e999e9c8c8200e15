#include "tensor/tensor.h"

#include "device/out_of_memory.h"

namespace bloomery {

Tensor Tensor::empty(Stream& stream, DType dtype, const Shape& shape,
                     const std::source_location& who) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (int i = 0; i < shape.rank(); ++i) {
    check(!__builtin_mul_overflow(bytes, shape[i], &bytes), "a tensor ", dtype, shape,
          " has more bytes than can be counted; make the sizes smaller");
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  try {
    tensor.storage_ = std::make_shared<Storage>(stream.memory(), tensor.bytes());
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(concat("for a tensor ", dtype, shape, " of ", function(who), place(who), ": ",
                             error.what()));
  }
  tensor.data_ = tensor.storage_->data();
  return tensor;
}

Tensor Tensor::zeros(Stream& stream, DType dtype, const Shape& shape,
                     const std::source_location& who) {
  Tensor tensor = empty(stream, dtype, shape, who);
  stream.fill(tensor.data(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t end) const {
  check(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0], "slice [", begin, ", ",
        end, ") of a tensor of shape ", shape_);
  Tensor part = *this;
  const std::int64_t row = shape_[0] == 0 ? 0 : numel() / shape_[0];
  part.data_ = static_cast<char*>(data_) + static_cast<std::size_t>(begin * row) * size_of(dtype_);
  part.shape_[0] = end - begin;
  return part;
}

Tensor Tensor::reshape(const Shape& shape) const {
  check(shape.numel() == numel(), "reshape of ", shape_, " to ", shape,
        " changes the number of elements");
  Tensor same = *this;
  same.shape_ = shape;
  return same;
}

Tensor Tensor::range(std::int64_t first, const Shape& shape) const {
  check(first >= 0 && first + shape.numel() <= numel(), "range of ", shape.numel(),
        " elements from ", first, " of a tensor of shape ", shape_);
  Tensor part = *this;
  part.data_ = static_cast<char*>(data_) + static_cast<std::size_t>(first) * size_of(dtype_);
  part.shape_ = shape;
  return part;
}

}  // namespace bloomery
