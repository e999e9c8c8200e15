// Gradient of the embedding without atomics. Tokens are sorted by row (stable, so the order of the
// sums is that of the tokens); the sorted list is cut into windows of fixed length, so that a row
// that many tokens share is spread over many blocks. A window writes the rows that lie wholly
// inside it and leaves partial sums of the rows that cross its ends; a second pass adds those up in
// order.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/embedding/embedding.h"

namespace bloomery {
namespace {

constexpr int kWindow = 32;   // sorted tokens per block
constexpr int kInFlight = 8;  // rows read ahead of their summation
constexpr int kThreads = 128;

struct Sorted {
  const std::uint32_t* rows;   // ascending; num_rows for tokens without a row
  const std::int32_t* tokens;  // which token
  std::int64_t count;
  std::uint32_t num_rows;
};

__global__ void make_keys(const std::int32_t* ids, std::int64_t first, std::int64_t limit,
                          std::uint32_t* rows, std::int32_t* tokens, std::int64_t count,
                          std::uint32_t num_rows) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t < count) {
    const std::int64_t id = ids[t], row = id - first;
    rows[t] = id < limit && row >= 0 && row < num_rows ? static_cast<std::uint32_t>(row) : num_rows;
    tokens[t] = static_cast<std::int32_t>(t);
  }
}

template <int kCount, class To>
__device__ __forceinline__ void add_to(To* target, const float (&sum)[kCount], bool add) {
  Pack<To, kCount> out;
  if (add) {
    out = load_pack<kCount>(target);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    out[j] = from_float<To>(add ? to_float(out[j]) + sum[j] : sum[j]);
  }
  store_pack(target, out);
}

// What one window needs to know of its neighbours.
struct Window {
  std::uint32_t rows[kWindow];
  std::int32_t tokens[kWindow];
  int count;
  bool enters;  // its first row began in the window before
  bool leaves;  // its last row goes on in the next window
};

__device__ __forceinline__ void read_window(const Sorted& sorted, Window& window) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kWindow;
  const std::int64_t left = sorted.count - begin;
  const int count = left < kWindow ? static_cast<int>(left) : kWindow;
  if (threadIdx.x < count) {
    window.rows[threadIdx.x] = sorted.rows[begin + threadIdx.x];
    window.tokens[threadIdx.x] = sorted.tokens[begin + threadIdx.x];
  }
  if (threadIdx.x == 0) {
    window.count = count;
    window.enters = begin > 0 && sorted.rows[begin - 1] == sorted.rows[begin];
    window.leaves =
        left > kWindow && sorted.rows[begin + kWindow - 1] == sorted.rows[begin + kWindow];
  }
  __syncthreads();
}

// partials: [windows, 2, width]: of the first row when it entered, of the last when it began here
// and leaves.
template <int kCount, class T, class Table>
__global__ void window_sums(const T* grad_y, Sorted sorted, Table* grad_table, float* partials,
                            std::int64_t width, bool add) {
  __shared__ Window window;
  read_window(sorted, window);
  const std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount;
  if (column >= width) {
    return;
  }
  float* partial = partials + std::int64_t{blockIdx.x} * 2 * width + column;
  float sum[kCount] = {};
  for (int begin = 0; begin < window.count; begin += kInFlight) {
    Pack<T, kCount> ahead[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      if (begin + j < window.count) {
        ahead[j] = load_pack<kCount>(grad_y + window.tokens[begin + j] * width + column);
      }
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      const int i = begin + j;
      if (i >= window.count) {
        break;
      }
#pragma unroll
      for (int c = 0; c < kCount; ++c) {
        sum[c] += to_float(ahead[j][c]);
      }
      const bool last = i + 1 == window.count;
      const std::uint32_t row = window.rows[i];
      if (!last && window.rows[i + 1] == row) {
        continue;
      }
      if (window.enters && row == window.rows[0]) {
        add_to(partial, sum, false);
      } else if (last && window.leaves) {
        add_to(partial + width, sum, false);
      } else if (row < sorted.num_rows) {
        add_to(grad_table + row * width + column, sum, add);
      }
#pragma unroll
      for (int c = 0; c < kCount; ++c) {
        sum[c] = 0;
      }
    }
  }
}

// First position at or after `begin` whose row is not `row`.
__device__ __forceinline__ std::int64_t end_of_row(const Sorted& sorted, std::int64_t begin,
                                                   std::uint32_t row) {
  std::int64_t low = begin, high = sorted.count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (sorted.rows[middle] == row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The window in which a crossing row begins adds up its partial sums.
template <int kCount, class Table>
__global__ void crossing_sums(Sorted sorted, Table* grad_table, const float* partials,
                              std::int64_t width, bool add) {
  const std::int64_t w = blockIdx.x, begin = w * kWindow, next = begin + kWindow;
  if (next >= sorted.count) {
    return;
  }
  const std::uint32_t row = sorted.rows[next - 1];
  const bool began_before = begin > 0 && sorted.rows[begin - 1] == row;
  const std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount;
  if (sorted.rows[next] != row || began_before || row >= sorted.num_rows || column >= width) {
    return;
  }
  const std::int64_t last_window = (end_of_row(sorted, next, row) - 1) / kWindow;
  const Pack<float, kCount> head = load_pack<kCount>(partials + (w * 2 + 1) * width + column);
  float sum[kCount];
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    sum[c] = head[c];
  }
#pragma unroll 4
  for (std::int64_t v = w + 1; v <= last_window; ++v) {
    const Pack<float, kCount> part = load_pack<kCount>(partials + v * 2 * width + column);
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      sum[c] += part[c];
    }
  }
  add_to(grad_table + row * width + column, sum, add);
}

Tensor sort_tokens(Stream& stream, const RowIds& rows, std::int64_t num_rows) {
  const std::int64_t count = rows.ids.numel();
  check(count <= INT32_MAX && num_rows < INT32_MAX, "embedding: ", count, " tokens or ", num_rows,
        " rows are too many for one call");
  const Tensor scratch = Tensor::empty(stream, DType::int32, {4, count});
  const auto part = [&](int i) { return static_cast<std::int32_t*>(scratch.data()) + i * count; };
  const auto keys = [&](int i) { return reinterpret_cast<std::uint32_t*>(part(i)); };
  make_keys<<<num_blocks(count, 256), 256, 0, cuda_stream(stream)>>>(
      rows.ids.as<std::int32_t>(), rows.first, rows.limit, keys(2), part(3), count,
      static_cast<std::uint32_t>(num_rows));
  check_launch("embedding keys");
  const int bits = std::bit_width(static_cast<std::uint32_t>(num_rows));
  std::size_t bytes = 0;
  const auto sort = [&](void* memory) {
    check_cuda(
        cub::DeviceRadixSort::SortPairs(memory, bytes, keys(2), keys(0), part(3), part(1),
                                        static_cast<int>(count), 0, bits, cuda_stream(stream)),
        "embedding: sort of tokens");
  };
  sort(nullptr);
  const Tensor memory = Tensor::empty(stream, DType::uint8,
                                      {static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1))});
  sort(memory.data());
  return scratch;  // rows, then tokens, of the sorted list
}

template <class T, class Table>
void launch_sums(Stream& stream, const EmbeddingBackward& k, const Sorted& sorted) {
  const std::int64_t width = k.grad_table.columns();
  const std::int64_t windows = (sorted.count + kWindow - 1) / kWindow;
  const Tensor partials = Tensor::empty(stream, DType::fp32, {windows, 2, width});
  constexpr int kCount = kPackSize<T>;
  const auto at = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
  const bool packed = width % kCount == 0 && at(k.grad_y.data) % 16 == 0 &&
                      at(k.grad_table.data) % (kCount * sizeof(Table)) == 0;
  const dim3 grid(static_cast<unsigned>(windows),
                  num_blocks(width, kThreads * (packed ? kCount : 1)));
  const auto sums = packed ? window_sums<kCount, T, Table> : window_sums<1, T, Table>;
  sums<<<grid, kThreads, 0, cuda_stream(stream)>>>(
      k.grad_y.as<T>(), sorted, k.grad_table.as<Table>(), static_cast<float*>(partials.data()),
      width, k.add);
  check_launch("embedding window sums");
  const auto crossing = packed ? crossing_sums<kCount, Table> : crossing_sums<1, Table>;
  crossing<<<grid, kThreads, 0, cuda_stream(stream)>>>(
      sorted, k.grad_table.as<Table>(), static_cast<const float*>(partials.data()), width, k.add);
  check_launch("embedding crossing sums");
}

}  // namespace

void run(OnCuda, Stream& stream, const EmbeddingBackward& k) {
  if (!k.add) {
    stream.fill(k.grad_table.data, 0, k.grad_table.bytes());
  }
  const std::int64_t count = k.rows.ids.numel();
  if (count == 0 || k.grad_table.numel() == 0) {
    return;
  }
  const Tensor list = sort_tokens(stream, k.rows, k.grad_table.rows());
  const auto* data = static_cast<const std::int32_t*>(list.data());
  const Sorted sorted{reinterpret_cast<const std::uint32_t*>(data), data + count, count,
                      static_cast<std::uint32_t>(k.grad_table.rows())};
  dispatch_device(k.grad_y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (k.grad_table.dtype == DType::bf16) {
      launch_sums<T, __nv_bfloat16>(stream, k, sorted);
    } else {
      launch_sums<T, float>(stream, k, sorted);
    }
  });
}

}  // namespace bloomery
