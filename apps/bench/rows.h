// The rows of `bloomery bench ops`: one launch of a kernel on the shapes of a GPT, with the bytes
// it must move and the operations it must do.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// The model and micro-batch that shapes are taken from; the defaults are GPT-2's small model.
struct BenchShapes {
  std::int64_t micro_batch = 4;
  std::int64_t sequence = 1024;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 50304;

  std::int64_t tokens() const { return micro_batch * sequence; }
  std::int64_t ffn() const { return 4 * hidden; }
};

// Makes the tensors of a row and adds up what a launch must move through memory at least.
class BenchSetup {
 public:
  BenchSetup(Stream& to_use, DType compute) : stream(to_use), dtype(compute) {}

  // Read, with normal-looking values of the given scale, or integers spread over [0, limit).
  Tensor in(const Shape& shape, float scale = 1) { return in(dtype, shape, scale); }
  Tensor in(DType type, const Shape& shape, float scale = 1);
  Tensor integers(const Shape& shape, std::int64_t limit);
  // Written.
  Tensor out(const Shape& shape) { return out(dtype, shape); }
  Tensor out(DType type, const Shape& shape);
  // Read and written, zero at first.
  Tensor updated(DType type, const Shape& shape);
  // For tensors made otherwise. Kernels have views, so the setup holds whatever they point into.
  Tensor keep(Tensor tensor) { return kept_.emplace_back(std::move(tensor)); }

  Stream& stream;
  const DType dtype;
  double bytes = 0;
  double flops = 0;  // set by rows bound by arithmetic

 private:
  std::vector<Tensor> kept_;
};

struct BenchRow {
  std::string op, shape;
  // The returned function launches the kernel once, as long as the setup lives.
  std::function<std::function<void()>(BenchSetup&)> make;
};

// The ceilings: a copy of memory far larger than the caches, and a large square product.
BenchRow copy_ceiling(std::int64_t mebibytes);
BenchRow product_ceiling(std::int64_t size);

std::vector<BenchRow> elementwise_rows(const BenchShapes& shapes);
std::vector<BenchRow> norm_rows(const BenchShapes& shapes);
std::vector<BenchRow> vocabulary_rows(const BenchShapes& shapes);
std::vector<BenchRow> product_rows(const BenchShapes& shapes);
std::vector<BenchRow> fp8_rows(const BenchShapes& shapes);
std::vector<BenchRow> attention_rows(const BenchShapes& shapes);
std::vector<BenchRow> optimizer_rows(const BenchShapes& shapes);

std::string shape_text(std::initializer_list<std::int64_t> extents);  // "65536x768"

// A launch of a kernel whose views point into `tensors`, which it keeps alive.
template <class Kernel>
std::function<void()> launching(BenchSetup& setup, Kernel kernel, std::vector<Tensor> tensors) {
  return [&stream = setup.stream, kernel, tensors = std::move(tensors)] { launch(stream, kernel); };
}

}  // namespace bloomery
