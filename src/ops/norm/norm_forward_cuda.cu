#include "device/launch_cuda.cuh"
#include "ops/norm/rows_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kRowsPerBlock = 4;  // where a warp holds a row
constexpr int kThreads = 256;     // of a block that goes by element
// With so few rows time is the path through one of them: as many threads share it as can.
constexpr std::int64_t kFewRows = 512;

template <class Stored, class Branch>
struct Arguments {
  const Stored* stream;
  const Branch *pending, *gain, *bias;
  Stored* out;
  Branch* y;
  float* statistics;
  std::int64_t rows, columns;
  DropoutMask mask;
  float epsilon;
  bool rms, one_plus_gain;
};

// The first mean is corrected by the mean of what is left over (shift): centring in two steps
// keeps an offset far larger than the deviation harmless.
struct Statistics {
  float mean = 0, shift = 0, inverse = 0;
};

__device__ __forceinline__ Statistics layer_statistics(float mean, float2 centred_sums,
                                                       float columns, float epsilon) {
  const float shift = centred_sums.x / columns;
  const float variance = fmaxf(centred_sums.y / columns - shift * shift, 0.0f);
  return {mean, shift, 1.0f / sqrtf(variance + epsilon)};
}

template <class Args>
__device__ __forceinline__ void keep(const Args& a, std::int64_t row, const Statistics& s) {
  if (a.statistics == nullptr) {
    return;
  }
  if (a.rms) {
    a.statistics[row] = s.inverse;
  } else {
    a.statistics[2 * row] = s.mean + s.shift;
    a.statistics[2 * row + 1] = s.inverse;
  }
}

// The row as the stream stores it: read, or summed and written.
template <int kOctets, class Team, class Stored, class Branch>
__device__ __forceinline__ void load_row(const Arguments<Stored, Branch>& a, std::int64_t row,
                                         Octet<Stored> (&x)[kOctets]) {
  const std::int64_t first = row * a.columns;
  Octet<Branch> pending[kOctets];
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    x[i] = column < a.columns ? load_octet(a.stream + first + column) : zero_octet<Stored>();
    if (a.pending != nullptr && column < a.columns) {
      pending[i] = load_octet(a.pending + first + column);
    }
  }
  if (a.pending == nullptr) {
    return;
  }
  const RowMask mask(a.mask, row);
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    if (column < a.columns) {
      float factors[kOctet] = {1, 1, 1, 1, 1, 1, 1, 1};
      if (a.mask) {
        mask.factors(column, factors);
      }
      x[i] = settled(x[i], factors, pending[i]);
      store_octet(a.out + first + column, x[i]);
    }
  }
}

template <int kOctets, class Team, class Stored, class Branch>
__device__ __forceinline__ Statistics row_statistics(const Arguments<Stored, Branch>& a,
                                                     const Octet<Stored> (&x)[kOctets]) {
  const auto columns = static_cast<float>(a.columns);
  float2 sums = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
      sums.x += x[i][j];
      sums.y += x[i][j] * x[i][j];
    }
  }
  sums = Team::sum(sums);
  if (a.rms) {
    return {0.0f, 0.0f, 1.0f / sqrtf(sums.y / columns + a.epsilon)};
  }
  const float mean = sums.x / columns;
  sums = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    if (Team::column(i) < a.columns) {
#pragma unroll
      for (int j = 0; j < kOctet; ++j) {
        const float centred = x[i][j] - mean;
        sums.x += centred;
        sums.y += centred * centred;
      }
    }
  }
  return layer_statistics(mean, Team::sum(sums), columns, a.epsilon);
}

template <int kOctets, bool kWholeBlock, class Stored, class Branch>
__global__ void __launch_bounds__(kWholeBlock ? kMaxThreadsPerRow : kRowsPerBlock* kWarpSize)
    norm_forward(Arguments<Stored, Branch> a) {
  using Team = RowTeam<kWholeBlock>;
  let_next_kernel_start();
  if constexpr (kOctets == 1 && kWholeBlock) {
    if (Team::column(0) < a.columns) {
      fetch_ahead(a.gain + Team::column(0));
    }
  }
  wait_for_kernels_before();
  const std::int64_t row = std::int64_t{blockIdx.x} * Team::rows_per_block() + Team::row_of_block();
  if (row >= a.rows) {
    return;
  }
  Octet<Stored> x[kOctets];
  load_row<kOctets, Team>(a, row, x);
  const Statistics s = row_statistics<kOctets, Team>(a, x);
#pragma unroll
  for (int i = 0; i < kOctets; ++i) {
    const int column = Team::column(i);
    if (column < a.columns) {
      const Octet<Branch> gain = load_octet(a.gain + column);
      const Octet<Branch> bias =
          a.bias != nullptr ? load_octet(a.bias + column) : zero_octet<Branch>();
      float y[kOctet];
#pragma unroll
      for (int j = 0; j < kOctet; ++j) {
        const float h = (x[i][j] - s.mean - s.shift) * s.inverse;
        y[j] = fmaf(h, a.one_plus_gain ? 1.0f + gain[j] : gain[j], bias[j]);
      }
      store_octet(a.y + row * a.columns + column, to_octet<Branch>(y));
    }
  }
  if (Team::lane() == 0) {
    keep(a, row, s);
  }
}

// Any number of columns: a block per row, which reads the row again for each step.
template <class Stored, class Branch>
__global__ void norm_forward_by_element(Arguments<Stored, Branch> a) {
  using Team = RowTeam<true>;
  const std::int64_t row = blockIdx.x, first = row * a.columns;
  const Stored* x = a.stream + first;
  if (a.pending != nullptr) {
    const RowMask mask(a.mask, row);
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const float factor = a.mask ? mask.factor(c) : 1.0f;
      a.out[first + c] = settled<Stored>(to_float(x[c]), factor, to_float(a.pending[first + c]));
    }
    x = a.out + first;  // each thread reads what it wrote itself
  }
  const auto columns = static_cast<float>(a.columns);
  float2 sums = {0.0f, 0.0f};
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    sums.x += to_float(x[c]);
    sums.y += to_float(x[c]) * to_float(x[c]);
  }
  sums = Team::sum(sums);
  Statistics s{.inverse = 1.0f / sqrtf(sums.y / columns + a.epsilon)};
  if (!a.rms) {
    const float mean = sums.x / columns;
    sums = {0.0f, 0.0f};
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const float centred = to_float(x[c]) - mean;
      sums.x += centred;
      sums.y += centred * centred;
    }
    s = layer_statistics(mean, Team::sum(sums), columns, a.epsilon);
  }
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const float h = (to_float(x[c]) - s.mean - s.shift) * s.inverse;
    const float gain = to_float(a.gain[c]) + (a.one_plus_gain ? 1.0f : 0.0f);
    a.y[first + c] =
        from_float<Branch>(fmaf(h, gain, a.bias != nullptr ? to_float(a.bias[c]) : 0.0f));
  }
  if (threadIdx.x == 0) {
    keep(a, row, s);
  }
}

template <class Stored, class Branch>
void launch_forward(Stream& stream, const Arguments<Stored, Branch>& a) {
  if (!fits_octets(a.columns, a.stream, a.pending, a.gain, a.bias, a.out, a.y) ||
      a.columns > kBlockColumns) {
    norm_forward_by_element<<<num_blocks(a.rows, 1), kThreads, 0, cuda_stream(stream)>>>(a);
  } else if (a.rows <= kFewRows && a.columns <= kColumnsPerOctet * kMaxWarpsPerRow) {
    launch_kernel(stream, norm_forward<1, true, Stored, Branch>, dim3(num_blocks(a.rows, 1)),
                  threads_per_row(a.columns, 1), a);
  } else if (a.columns > kWarpColumns) {
    launch_kernel(stream, norm_forward<kMaxOctets, true, Stored, Branch>,
                  dim3(num_blocks(a.rows, 1)), threads_per_row(a.columns, kMaxOctets), a);
  } else {
    dispatch_octets<kMaxOctets>(a.columns, [&](auto octets) {
      launch_kernel(stream, norm_forward<octets(), false, Stored, Branch>,
                    dim3(num_blocks(a.rows, kRowsPerBlock)), kRowsPerBlock * kWarpSize, a);
    });
  }
  check_launch("norm_forward");
}

// A warp per row; by octets where the rows allow it.
template <bool kByOctet, class Stored, class Branch>
__global__ void add_pending_rows(Arguments<Stored, Branch> a) {
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (kThreads / kWarpSize) + threadIdx.x / kWarpSize;
  if (row >= a.rows) {
    return;
  }
  constexpr int kStep = kByOctet ? kOctet : 1;
  const RowMask mask(a.mask, row);
  for (std::int64_t c = threadIdx.x % kWarpSize * kStep; c < a.columns; c += kWarpSize * kStep) {
    const std::int64_t at = row * a.columns + c;
    if constexpr (kByOctet) {
      const Octet<Stored> x = load_octet(a.stream + at);
      const Octet<Branch> pending = load_octet(a.pending + at);
      float factors[kOctet] = {1, 1, 1, 1, 1, 1, 1, 1};
      if (a.mask) {
        mask.factors(c, factors);
      }
      store_octet(a.out + at, settled(x, factors, pending));
    } else {
      a.out[at] = settled<Stored>(to_float(a.stream[at]), a.mask ? mask.factor(c) : 1.0f,
                                  to_float(a.pending[at]));
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const NormForward& k) {
  if (k.stream.numel() == 0) {
    return;
  }
  dispatch_stream(k.stream.dtype, k.gain.dtype, [&](auto stored, auto branch) {
    using Stored = typename decltype(stored)::type;
    using Branch = typename decltype(branch)::type;
    launch_forward(stream, Arguments<Stored, Branch>{.stream = k.stream.as<Stored>(),
                                                     .pending = k.pending.as<Branch>(),
                                                     .gain = k.gain.as<Branch>(),
                                                     .bias = k.bias.as<Branch>(),
                                                     .out = k.out.as<Stored>(),
                                                     .y = k.y.as<Branch>(),
                                                     .statistics = k.statistics.as<float>(),
                                                     .rows = k.stream.rows(),
                                                     .columns = k.stream.columns(),
                                                     .mask = k.mask,
                                                     .epsilon = k.options.epsilon,
                                                     .rms = k.options.kind == NormKind::rms,
                                                     .one_plus_gain = k.options.one_plus_gain});
  });
}

void run(OnCuda, Stream& stream, const Settle& k) {
  if (k.stream.numel() == 0) {
    return;
  }
  dispatch_stream(k.stream.dtype, k.pending.dtype, [&](auto stored, auto branch) {
    using Stored = typename decltype(stored)::type;
    using Branch = typename decltype(branch)::type;
    const Arguments<Stored, Branch> a{.stream = k.stream.as<Stored>(),
                                      .pending = k.pending.as<Branch>(),
                                      .out = k.out.as<Stored>(),
                                      .rows = k.stream.rows(),
                                      .columns = k.stream.columns(),
                                      .mask = k.mask};
    const bool octets = fits_octets(a.columns, a.stream, a.pending, a.out);
    const auto kernel =
        octets ? add_pending_rows<true, Stored, Branch> : add_pending_rows<false, Stored, Branch>;
    kernel<<<num_blocks(a.rows, kThreads / kWarpSize), kThreads, 0, cuda_stream(stream)>>>(a);
    check_launch("add_pending");
  });
}

}  // namespace bloomery
