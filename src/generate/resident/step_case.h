// The kernels of a decoder's step, for the tests of who takes them together.
#pragma once

#include <cmath>
#include <map>
#include <numeric>

#include "harness/device_test.h"
#include "ops/activation/activation.h"
#include "ops/cache/cached_attention.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"
#include "ops/quantized/quantized.h"
#include "ops/quantized/quantized_product.h"
#include "ops/rotary/rotary.h"

namespace bloomery::testing {

// As its layers launch them.
struct Decoder {
  DType dtype = DType::bf16;
  QuantizedFormat format = QuantizedFormat::none;  // of the weights in layers
  std::int64_t rows = 1, hidden = 64, groups = 1, heads_per_group = 2, head_dim = 32, ffn = 128;
  std::int64_t columns = 300;  // of the output
  int layers = 2;
  bool llama = true;  // RMS norm, turned heads, a gate; else layer norm, biases, GELU
  bool interleaved = false;
  std::int64_t capacity = 512;
  bool in_pages = false;
  std::vector<std::int32_t> lengths;  // of the rows; negative: the row has no new token
};

inline void PrintTo(const Decoder& d, std::ostream* out) {
  *out << d.dtype << ' ' << d.format << ' ' << d.rows << " rows, hidden " << d.hidden << ", ffn "
       << d.ffn;
}

class Step {
 public:
  Step(Stream& stream, const Decoder& d) : stream_(stream), d_(d) {
    std::vector<std::int32_t> slots, lengths, counts;
    for (std::int64_t r = 0; r < d.rows; ++r) {
      const std::int32_t length = d.lengths[static_cast<std::size_t>(r)];
      slots.push_back(static_cast<std::int32_t>(d.rows - 1 - r));
      lengths.push_back(std::abs(length));
      counts.push_back(length < 0 ? 0 : 1);
    }
    places_ = Tensor::from_host(stream, slots, {d.rows});
    lengths_ = Tensor::from_host(stream, lengths, {d.rows});
    counts_ = Tensor::from_host(stream, counts, {d.rows});
    if (d.in_pages) {
      const std::int64_t count = d.rows * d.capacity / kCachePage;
      std::vector<std::int32_t> pages(static_cast<std::size_t>(count));
      std::iota(pages.rbegin(), pages.rend(), 0);
      pages_ = Tensor::from_host(stream, pages, {count});
    }
    arrivals_ = Tensor::zeros(stream, DType::int32, {d.rows * d.groups});
    for (int layer = 0; layer < d.layers; ++layer) {
      caches_.push_back(random({d.rows, d.capacity, d.groups, 2, d.head_dim}, 1));
    }
    table_ = make_rotary_table(10000, d.head_dim, {}, 0);
  }

  // Everything a step computes: sums of the stream, the caches, the output.
  std::vector<Tensor> run() {
    numbers_ = 100;
    Tensor stream = weight({d_.rows, d_.hidden}, 1), pending;
    std::vector<Tensor> results;
    for (const Tensor& cache : caches_) {
      results.push_back(Tensor::empty(stream_, d_.dtype, cache.shape()));
      stream_.copy(results.back().data(), cache.data(), cache.bytes());
    }
    for (int layer = 0; layer < d_.layers; ++layer) {
      const Tensor qkv = product(norm(stream, pending), qkv_width());
      pending = product(attention(qkv, results[static_cast<std::size_t>(layer)]), d_.hidden);
      const Tensor x = norm(stream, pending);
      pending = product(inner(x), d_.hidden);
      results.push_back(stream);
    }
    results.push_back(product(norm(stream, pending), d_.columns, DType::fp32));
    return results;
  }

 private:
  std::int64_t qkv_width() const { return d_.groups * (d_.heads_per_group + 2) * d_.head_dim; }

  Tensor random(const Shape& shape, double size) {
    const RandomKey key = random_key(7, concat("tensor ", numbers_++));
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      numbers.push_back(size * random_normal(key, static_cast<std::uint64_t>(i)));
    }
    return to_device(stream_, d_.dtype, numbers).reshape(shape);
  }
  Tensor weight(const Shape& shape, double size) {  // made in the first run
    Tensor& made = weights_[numbers_];
    if (!made) {
      made = random(shape, size);
    } else {
      ++numbers_;
    }
    return made;
  }

  Tensor norm(Tensor& stream, const Tensor& pending) {
    const Tensor gain = weight({d_.hidden}, 1), bias = weight({d_.hidden}, 1);
    const Tensor y = Tensor::empty(stream_, d_.dtype, stream.shape());
    const Tensor sum = pending ? Tensor::empty(stream_, d_.dtype, stream.shape()) : Tensor();
    launch(stream_, NormForward{.options = {.kind = d_.llama ? NormKind::rms : NormKind::layer},
                                .stream = stream,
                                .pending = pending,
                                .gain = gain,
                                .bias = d_.llama ? ConstView() : ConstView(bias),
                                .out = sum,
                                .y = y});
    stream = sum ? sum : stream;
    return y;
  }

  Tensor product(const Tensor& a, std::int64_t n, DType result = DType::bf16,
                 Activation activation = Activation::none) {
    const std::int64_t k = a.shape().back();
    const Tensor b = weight({n, k}, 1 / std::sqrt(static_cast<double>(k))), bias = weight({n}, 1);
    Tensor d = Tensor::empty(stream_, result == DType::fp32 ? result : d_.dtype, {d_.rows, n});
    if (result != DType::fp32 && d_.format != QuantizedFormat::none) {
      const QuantizedTensor& w = codes(numbers_, b);
      launch(stream_, QuantizedProduct{.a = a,
                                       .codes = w.codes,
                                       .scales = w.scales,
                                       .format = d_.format,
                                       .bias = d_.llama ? ConstView() : ConstView(bias),
                                       .activation = activation,
                                       .d = d});
      return d;
    }
    launch(stream_, Matmul{.a = a,
                           .b = b,
                           .d = d,
                           .transpose_b = true,
                           .b_lasts = true,
                           .bias = d_.llama ? ConstView() : ConstView(bias),
                           .activation = activation});
    return d;
  }

  const QuantizedTensor& codes(int number, const Tensor& weight) {  // made in the first run
    QuantizedTensor& made = codes_[number];
    if (!made) {
      made = QuantizedTensor::empty(stream_, d_.format, d_.dtype, weight.shape());
      quantize_rows(stream_, weight, 0, weight.shape().back(), made, 0);
    }
    return made;
  }

  Tensor attention(const Tensor& qkv, const Tensor& cache) {
    if (d_.llama) {
      launch(stream_, Rotary{.data = qkv,
                             .positions = lengths_,
                             .num_tokens = d_.rows,
                             .num_groups = d_.groups,
                             .heads = d_.heads_per_group + 2,
                             .turned = d_.heads_per_group + 1,
                             .head_dim = d_.head_dim,
                             .interleaved = d_.interleaved,
                             .table = table_});
    }
    const auto ints = [](const Tensor& t) { return static_cast<const std::int32_t*>(t.data()); };
    const CacheProblem problem{
        .dtype = d_.dtype,
        .num_sequences = d_.rows,
        .length = 1,
        .capacity = d_.capacity,
        .num_groups = d_.groups,
        .heads_per_group = d_.heads_per_group,
        .head_dim = d_.head_dim,
        .places = {.slots = ints(places_),
                   .lengths = ints(lengths_),
                   .counts = ints(counts_),
                   .pages = d_.in_pages ? ints(pages_) : nullptr,
                   .pages_per_slot = static_cast<std::int32_t>(d_.capacity / kCachePage)}};
    const std::int64_t width = problem.num_heads() * d_.head_dim;
    Tensor out = Tensor::empty(stream_, d_.dtype, {d_.rows, width});
    launch(stream_, CachedAttention{.problem = problem,
                                    .scale = 0.2f,
                                    .qkv = qkv,
                                    .cache = cache,
                                    .out = out,
                                    .arrivals = arrivals_});
    return out;
  }

  Tensor inner(const Tensor& x) {
    if (!d_.llama) {
      return product(x, d_.ffn, d_.dtype, Activation::gelu_tanh);
    }
    const Tensor up = product(x, 2 * d_.ffn);
    Tensor y = Tensor::empty(stream_, d_.dtype, {d_.rows, d_.ffn});
    launch(stream_, GatedForward{.x = up, .y = y, .activation = Activation::silu});
    return y;
  }

  Stream& stream_;
  const Decoder& d_;
  int numbers_ = 0;
  std::map<int, Tensor> weights_;
  std::map<int, QuantizedTensor> codes_;
  std::vector<Tensor> caches_;
  Tensor places_, lengths_, counts_, pages_, arrivals_;
  RotaryTable table_;
};

inline double largest_error(Stream& stream, const Tensor& found, const Tensor& expected) {
  const std::vector<double> a = to_doubles(stream, found), b = to_doubles(stream, expected);
  double error = 0, size = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : 1e30);
    size = std::max(size, std::abs(b[i]));
  }
  return error / size;
}

}  // namespace bloomery::testing
