#include "device/cuda_check.h"
#include "ops/norm/rows_cuda.cuh"

namespace bloomery {
namespace {

// The sums of the parameter gradients take registers, so that fewer columns go to a thread than in
// forward: a warp holds a row of up to 768, a block with two octets per thread one of up to 8192.
constexpr int kThreads = 256;  // eight rows at a time where a warp holds a row
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kWarpOctets = 3, kBlockOctets = 2;

template <class Stored, class Branch>
struct Arguments {
  const Branch* dy;
  const Stored* x;
  const Branch* gain;
  const float* statistics;
  const Stored* later;
  Stored* d_stream;
  Branch* d_pending;
  float* partials;  // per block: columns of d_gain, then (with bias) columns of d_bias
  std::int64_t rows, columns;
  DropoutMask mask;
  bool rms, one_plus_gain, bias, add_stream, add_pending;

  __device__ float mean(std::int64_t row) const { return rms ? 0.0f : statistics[2 * row]; }
  __device__ float inverse(std::int64_t row) const {
    return rms ? statistics[row] : statistics[2 * row + 1];
  }
  // g = dy * gain, rounded: fused into a subtraction it would differ from its own mean in a row
  // of equal elements.
  __device__ float g(float upstream, float stored_gain) const {
    return __fmul_rn(upstream, one_plus_gain ? 1.0f + stored_gain : stored_gain);
  }
  // The two sums as the means that the formula of dx needs.
  __device__ float2 means(float2 sums) const {
    const auto count = static_cast<float>(columns);
    return {rms ? 0.0f : sums.x / count, sums.y / count};
  }
  __device__ float* block_partials() const {
    return partials + std::int64_t{blockIdx.x} * columns * (bias ? 2 : 1);
  }
};

// A thread's part of one row, as stored.
template <int kOctets, class Stored, class Branch>
struct RowPart {
  Octet<Branch> dy[kOctets];
  Octet<Stored> x[kOctets], later[kOctets];
};

template <class Team, int kOctets, class Stored, class Branch>
__device__ __forceinline__ void load_row(const Arguments<Stored, Branch>& a, std::int64_t row,
                                         RowPart<kOctets, Stored, Branch>& part) {
  const std::int64_t first = row * a.columns;
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    const bool inside = column < a.columns;
    part.dy[i] = inside ? load_octet(a.dy + first + column) : zero_octet<Branch>();
    part.x[i] = inside ? load_octet(a.x + first + column) : zero_octet<Stored>();
    part.later[i] =
        inside && a.later != nullptr ? load_octet(a.later + first + column) : zero_octet<Stored>();
  }
}

// Writes eight elements of the gradient of the sum to the stream and, masked, to the branch.
template <class Stored, class Branch>
__device__ __forceinline__ void write_total(const Arguments<Stored, Branch>& a, std::int64_t at,
                                            int column, const RowMask& mask,
                                            const float (&total)[kOctet]) {
  if (a.d_stream != nullptr) {
    const auto earlier = a.add_stream ? load_octet(a.d_stream + at) : zero_octet<Stored>();
    float out[kOctet];
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
      out[j] = earlier[j] + total[j];
    }
    store_octet(a.d_stream + at, to_octet<Stored>(out));
  }
  if (a.d_pending != nullptr) {
    const auto earlier = a.add_pending ? load_octet(a.d_pending + at) : zero_octet<Branch>();
    float out[kOctet];
    float factors[kOctet] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (a.mask) {
      mask.factors(column, factors);
    }
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
      out[j] = fmaf(factors[j], total[j], earlier[j]);
    }
    store_octet(a.d_pending + at, to_octet<Branch>(out));
  }
}

// This thread's sums of the parameter gradients over the rows that it has seen.
template <int kOctets>
struct ParameterSums {
  float gain[kOctets][kOctet] = {}, bias[kOctets][kOctet] = {};
};

template <class Team, int kOctets, class Stored, class Branch>
__device__ __forceinline__ void row_backward(const Arguments<Stored, Branch>& a, std::int64_t row,
                                             ParameterSums<kOctets>& sums) {
  RowPart<kOctets, Stored, Branch> part;
  load_row<Team>(a, row, part);
  const float mean = a.mean(row), inverse = a.inverse(row);
  float2 row_sums = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    if (Team::column(i) < a.columns) {
      const Octet<Branch> gain = load_octet(a.gain + Team::column(i));
#pragma unroll
      for (int j = 0; j < kOctet; ++j) {
        const float h = (part.x[i][j] - mean) * inverse, dy = part.dy[i][j];
        const float g = a.g(dy, gain[j]);
        row_sums.x += g;
        row_sums.y += g * h;
        sums.gain[i][j] += dy * h;
        sums.bias[i][j] += dy;
      }
    }
  }
  const float2 means = a.means(Team::sum(row_sums));
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    keep_packed(part.dy[i]);
    keep_packed(part.x[i]);
  }
  const RowMask mask(a.d_pending != nullptr ? a.mask : DropoutMask{}, row);
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    if (column < a.columns) {
      const Octet<Branch> gain = load_octet(a.gain + column);
      float total[kOctet];
#pragma unroll
      for (int j = 0; j < kOctet; ++j) {
        const float h = (part.x[i][j] - mean) * inverse;
        const float g = a.g(part.dy[i][j], gain[j]);
        const float sum = fmaf(inverse, g - means.x - h * means.y, part.later[i][j]);
        total[j] = to_float(from_float<Stored>(sum));  // as settle would read it
      }
      write_total(a, row * a.columns + column, column, mask, total);
    }
  }
}

// Sums the parts of the block's warps in order, through shared memory, into the first warp.
template <int kOctets>
__device__ void combine_warps(float (&sums)[kOctets][kOctet]) {
  __shared__ float shared[kOctets * kOctet * kWarpSize];
  const int warp = threadIdx.x / kWarpSize;
  for (int turn = kWarps - 1; turn >= 0; --turn) {
    if (warp == turn) {
#pragma unroll
      for (int i = 0; i < kOctets; ++i) {
#pragma unroll
        for (int j = 0; j < kOctet; ++j) {
          float& cell = shared[(i * kOctet + j) * kWarpSize + threadIdx.x % kWarpSize];
          sums[i][j] += turn < kWarps - 1 ? cell : 0.0f;
          cell = sums[i][j];
        }
      }
    }
    __syncthreads();
  }
}

template <class Team, int kOctets>
__device__ __forceinline__ void write_sums(const float (&sums)[kOctets][kOctet], float* to,
                                           std::int64_t columns) {
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    if (column < columns) {
      store_octet(to + column, to_octet<float>(sums[i]));
    }
  }
}

// Persistent blocks: each takes every gridDim.x-th group of rows and leaves one partial sum.
template <int kOctets, bool kWholeBlock, class Stored, class Branch>
__global__ void __launch_bounds__(kWholeBlock ? kMaxThreadsPerRow : kThreads, kWholeBlock ? 1 : 2)
    norm_backward(Arguments<Stored, Branch> a) {
  using Team = RowTeam<kWholeBlock>;
  ParameterSums<kOctets> sums;
  const std::int64_t stride = std::int64_t{gridDim.x} * Team::rows_per_block();
  for (std::int64_t row = std::int64_t{blockIdx.x} * Team::rows_per_block() + Team::row_of_block();
       row < a.rows; row += stride) {
    row_backward<Team>(a, row, sums);
  }
  if constexpr (!kWholeBlock) {
    combine_warps(sums.gain);
    if (a.bias) {
      combine_warps(sums.bias);
    }
    if (threadIdx.x >= kWarpSize) {
      return;
    }
  }
  write_sums<Team>(sums.gain, a.block_partials(), a.columns);
  if (a.bias) {
    write_sums<Team>(sums.bias, a.block_partials() + a.columns, a.columns);
  }
}

// Any number of columns: a block per row, with the block's partial sums in memory, where each
// thread adds to its own columns.
template <class Stored, class Branch>
__global__ void norm_backward_by_element(Arguments<Stored, Branch> a) {
  float* d_gain = a.block_partials();
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    d_gain[c] = 0.0f;
    if (a.bias) {
      d_gain[a.columns + c] = 0.0f;
    }
  }
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t first = row * a.columns;
    const float mean = a.mean(row), inverse = a.inverse(row);
    float2 sums = {0.0f, 0.0f};
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const float h = (to_float(a.x[first + c]) - mean) * inverse, dy = to_float(a.dy[first + c]);
      const float g = a.g(dy, to_float(a.gain[c]));
      sums.x += g;
      sums.y += g * h;
      d_gain[c] += dy * h;
      if (a.bias) {
        d_gain[a.columns + c] += dy;
      }
    }
    const float2 means = a.means(RowTeam<true>::sum(sums));
    const RowMask mask(a.d_pending != nullptr ? a.mask : DropoutMask{}, row);
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const std::int64_t at = first + c;
      const float h = (to_float(a.x[at]) - mean) * inverse;
      const float g = a.g(to_float(a.dy[at]), to_float(a.gain[c]));
      const float sum = fmaf(inverse, g - means.x - h * means.y,
                             a.later != nullptr ? to_float(a.later[at]) : 0.0f);
      const float total = to_float(from_float<Stored>(sum));  // as settle would read it
      if (a.d_stream != nullptr) {
        a.d_stream[at] =
            from_float<Stored>(total + (a.add_stream ? to_float(a.d_stream[at]) : 0.0f));
      }
      if (a.d_pending != nullptr) {
        a.d_pending[at] =
            from_float<Branch>(fmaf(a.mask ? mask.factor(c) : 1.0f, total,
                                    a.add_pending ? to_float(a.d_pending[at]) : 0.0f));
      }
    }
  }
}

template <class Stored, class Branch>
void launch_backward(const Arguments<Stored, Branch>& a, unsigned blocks, cudaStream_t stream) {
  if (!fits_octets(a.columns, a.dy, a.x, a.gain, a.later, a.d_stream, a.d_pending) ||
      a.columns > kBlockColumns) {
    norm_backward_by_element<<<blocks, kThreads, 0, stream>>>(a);
  } else if (a.columns > kColumnsPerOctet * kBlockOctets * kMaxWarpsPerRow) {
    norm_backward<kMaxOctets, true>
        <<<blocks, threads_per_row(a.columns, kMaxOctets), 0, stream>>>(a);
  } else if (a.columns > kColumnsPerOctet * kWarpOctets) {
    norm_backward<kBlockOctets, true>
        <<<blocks, threads_per_row(a.columns, kBlockOctets), 0, stream>>>(a);
  } else {
    dispatch_octets<kWarpOctets>(a.columns, [&](auto octets) {
      norm_backward<octets(), false><<<blocks, kThreads, 0, stream>>>(a);
    });
  }
  check_launch("norm_backward");
}

// Column c of the partial sums, 32 columns per block: warp w adds rows w, w + 32, ..., then the
// warps' sums are added in order.
__global__ void norm_parameter_gradient(const float* partials, std::int64_t num_partials,
                                        std::int64_t columns, std::int64_t width, float* d_gain,
                                        float* d_bias, bool add_gain, bool add_bias) {
  __shared__ float sums[kWarpSize][kWarpSize + 1];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarpSize + threadIdx.x;
  float sum = 0.0f;
  if (column < width) {
    for (std::int64_t i = threadIdx.y; i < num_partials; i += kWarpSize) {
      sum += partials[i * width + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) {
    return;
  }
  float total = 0.0f;
  for (int i = 0; i < kWarpSize; ++i) {
    total += sums[i][threadIdx.x];
  }
  float* to = column < columns ? d_gain + column : d_bias + (column - columns);
  const bool add = column < columns ? add_gain : add_bias;
  *to = add ? *to + total : total;
}

}  // namespace

void run(OnCuda, Stream& stream, const NormBackward& k) {
  dispatch_stream(k.x.dtype, k.gain.dtype, [&](auto stored, auto branch) {
    using Stored = typename decltype(stored)::type;
    using Branch = typename decltype(branch)::type;
    launch_backward(Arguments<Stored, Branch>{.dy = k.dy.as<Branch>(),
                                              .x = k.x.as<Stored>(),
                                              .gain = k.gain.as<Branch>(),
                                              .statistics = k.statistics.as<float>(),
                                              .later = k.later.as<Stored>(),
                                              .d_stream = k.d_stream.as<Stored>(),
                                              .d_pending = k.d_pending.as<Branch>(),
                                              .partials = k.partials.as<float>(),
                                              .rows = k.x.rows(),
                                              .columns = k.x.columns(),
                                              .mask = k.mask,
                                              .rms = k.options.kind == NormKind::rms,
                                              .one_plus_gain = k.options.one_plus_gain,
                                              .bias = k.partials.shape[1] == 2,
                                              .add_stream = k.add_stream,
                                              .add_pending = k.add_pending},
                    static_cast<unsigned>(k.partials.shape[0]), cuda_stream(stream));
  });
}

void run(OnCuda, Stream& stream, const NormParameterGradient& k) {
  const std::int64_t columns = k.partials.columns(), width = k.partials.shape[1] * columns;
  norm_parameter_gradient<<<num_blocks(width, kWarpSize), dim3(kWarpSize, kWarpSize), 0,
                            cuda_stream(stream)>>>(k.partials.as<float>(), k.partials.shape[0],
                                                   columns, width, k.d_gain.as<float>(),
                                                   k.d_bias.as<float>(), k.add_gain, k.add_bias);
  check_launch("norm_parameter_gradient");
}

}  // namespace bloomery
