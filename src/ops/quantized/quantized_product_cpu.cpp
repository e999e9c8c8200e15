// A thread makes a row of the weights in L1 and multiplies all rows of a by it.
#include <vector>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/quantized/codes.h"
#include "ops/quantized/quantized_product.h"

namespace bloomery {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;
constexpr int kLanes = kRowLanes<float>;

// What a row's codes stand for, in parts of the factor that is returned.
template <QuantizedFormat kFormat, class T>
float decode_row(const std::uint8_t* codes, const T* scales, std::int64_t k, float* to) {
  if constexpr (kFormat == QuantizedFormat::nf4) {
    for (std::int64_t first = 0; first < k; first += kNf4Block) {
      const float scale = load(scales + first / kNf4Block);
      float numbers[kNf4Codes];
      for (int i = 0; i < kNf4Codes; ++i) {
        numbers[i] = nf4_number(i) * scale;
      }
      for (std::int64_t c = first; c < first + kNf4Block; c += 2) {
        to[c] = numbers[codes[c / 2] >> 4];
        to[c + 1] = numbers[codes[c / 2] & 15];
      }
    }
    return 1;
  } else {
    for (std::int64_t c = 0; c < k; ++c) {
      to[c] = ByteCode<kFormat>::number(codes[c]);
    }
    return static_cast<float>(load(scales)) / ByteCode<kFormat>::kLargest;
  }
}

// k is a multiple of the lanes. Four sums, so that additions do not wait for each other.
template <class T>
float inner_product(const T* a, const float* b, std::int64_t k) {
  Lanes<float> sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= k; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      sums[j] += load_lanes(a + i + j * kLanes) * load_lanes(b + i + j * kLanes);
    }
  }
  for (; i < k; i += kLanes) {
    sums[0] += load_lanes(a + i) * load_lanes(b + i);
  }
  const Lanes<float> all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int j = 0; j < kLanes; ++j) {
    sum += all[j];
  }
  return sum;
}

template <QuantizedFormat kFormat, Activation kActivation, class T>
void multiply(Stream& stream, const QuantizedProduct& p) {
  const std::int64_t m = p.a.rows(), k = p.a.columns(), n = p.codes.rows();
  const std::int64_t bytes = p.codes.columns(), scales = p.scales.columns();
  stream.device().pool().for_ranges(n, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(k));
    for (std::int64_t j = begin; j < end; ++j) {
      const float factor = decode_row<kFormat>(p.codes.as<std::uint8_t>() + j * bytes,
                                               p.scales.as<T>() + j * scales, k, row.data());
      const float bias = p.bias ? static_cast<float>(load(p.bias.as<T>() + j)) : 0.0f;
      for (std::int64_t i = 0; i < m; ++i) {
        const float sum = inner_product(p.a.as<T>() + i * k, row.data(), k) * factor + bias;
        store(p.d.as<T>() + i * n + j, activate<kActivation, kAccuracyFor<T>>(sum));
      }
    }
  });
}

template <QuantizedFormat kFormat>
void multiply(Stream& stream, const QuantizedProduct& p) {
  dispatch_activation(p.activation, [&](auto activation) {
    constexpr Activation kActivation = decltype(activation)::value;
    if (p.a.dtype == DType::bf16) {
      multiply<kFormat, kActivation, bfloat16>(stream, p);
    } else if (p.a.dtype == DType::fp16) {
      multiply<kFormat, kActivation, float16>(stream, p);
    } else {
      multiply<kFormat, kActivation, float>(stream, p);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const QuantizedProduct& p) {
  if (p.format == QuantizedFormat::nf4) {
    multiply<QuantizedFormat::nf4>(stream, p);
  } else if (p.format == QuantizedFormat::fp8) {
    multiply<QuantizedFormat::fp8>(stream, p);
  } else {
    multiply<QuantizedFormat::int8>(stream, p);
  }
}

}  // namespace bloomery
