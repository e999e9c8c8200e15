#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/embedding/embedding.h"

namespace bloomery {
namespace {

template <class T>
struct Rows {
  const T* table;  // null: adds nothing
  const std::int32_t* ids;
  std::int64_t first, limit, count;

  // Start of the row of token t, null when it has none.
  __device__ __forceinline__ const T* of(std::int64_t t, std::int64_t width) const {
    if (table == nullptr) {
      return nullptr;
    }
    const std::int64_t id = ids[t], row = id - first;
    return id < limit && row >= 0 && row < count ? table + row * width : nullptr;
  }
};

// One block per token.
template <int kCount, class From, class To>
__global__ void forward(Rows<From> tokens, Rows<From> positions, Rows<From> types, To* y,
                        int width) {
  const std::int64_t t = blockIdx.x;
  const From* token = tokens.of(t, width);
  const From* position = positions.of(t, width);
  const From* type = types.of(t, width);
  for (int column = threadIdx.x * kCount; column < width; column += blockDim.x * kCount) {
    Pack<From, kCount> a, b, c;
    if (token != nullptr) {
      a = load_pack<kCount>(token + column);
    }
    if (position != nullptr) {
      b = load_pack<kCount>(position + column);
    }
    if (type != nullptr) {
      c = load_pack<kCount>(type + column);
    }
    Pack<To, kCount> out;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      out[j] = from_float<To>((token != nullptr ? to_float(a[j]) : 0.0f) +
                              (position != nullptr ? to_float(b[j]) : 0.0f) +
                              (type != nullptr ? to_float(c[j]) : 0.0f));
    }
    store_pack(y + t * width + column, out);
  }
}

template <class From, class To>
void launch_forward(Stream& stream, const EmbeddingForward& k) {
  const auto rows = [](ConstView table, const RowIds& ids) {
    return Rows<From>{table.as<From>(), ids.ids.as<std::int32_t>(), ids.first, ids.limit,
                      table ? table.rows() : 0};
  };
  constexpr int kCount = kPackSize<From>;
  const int width = static_cast<int>(k.table.columns());
  const auto at = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data); };
  const bool packed = width % kCount == 0 && at(k.table.data) % 16 == 0 &&
                      at(k.position_table.data) % 16 == 0 && at(k.type_table.data) % 16 == 0 &&
                      at(k.y.data) % (kCount * sizeof(To)) == 0;
  const auto kernel = packed ? forward<kCount, From, To> : forward<1, From, To>;
  const int packs = width / (packed ? kCount : 1);
  const int threads = std::min(256, (packs + kWarpSize - 1) / kWarpSize * kWarpSize);
  kernel<<<static_cast<unsigned>(k.y.rows()), threads, 0, cuda_stream(stream)>>>(
      rows(k.table, k.tokens), rows(k.position_table, k.positions), rows(k.type_table, k.types),
      k.y.as<To>(), width);
  check_launch("embedding forward");
}

}  // namespace

void run(OnCuda, Stream& stream, const EmbeddingForward& k) {
  if (k.y.numel() == 0) {
    return;
  }
  dispatch_device(k.table.dtype, [&](auto tag) {
    using From = typename decltype(tag)::type;
    if (k.y.dtype == k.table.dtype) {
      launch_forward<From, From>(stream, k);
    } else {
      launch_forward<From, float>(stream, k);
    }
  });
}

}  // namespace bloomery
