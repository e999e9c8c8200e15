// On the CPU the sizes of groups are there to be read: a product for each.
#include <algorithm>

#include "ops/matmul/matmul.h"
#include "ops/moe/grouped_linear.h"

namespace bloomery {
namespace {

// Rows [begin, begin + count) of a matrix, or slice `begin` of a stack of them.
template <class AnyView>
AnyView part(AnyView whole, std::int64_t begin, std::int64_t rows, std::int64_t columns) {
  using Byte = std::conditional_t<std::is_same_v<AnyView, View>, char, const char>;
  if (whole) {
    whole.data = static_cast<Byte*>(whole.data) +
                 static_cast<std::size_t>(begin * columns) * size_of(whole.dtype);
    whole.shape = {rows, columns};
  }
  return whole;
}

template <class Body>
void for_groups(const GroupViews& groups, const Body& body) {
  const std::int32_t* const offsets = groups.offsets.as<std::int32_t>();
  for (std::int64_t e = 0; e + 1 < groups.offsets.numel(); ++e) {
    body(e, offsets[e], std::int64_t{offsets[e + 1]} - offsets[e]);
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const GroupedProduct& k) {
  for_groups(k.groups, [&](std::int64_t e, std::int64_t begin, std::int64_t rows) {
    if (rows == 0) {
      return;
    }
    ConstView bias = part(k.bias, e, 1, k.n);
    bias.shape = {k.n};
    bloomery::run(ThisCpu{}, stream,
                  Matmul{.a = part(k.a, begin, rows, k.k),
                         .b = part(k.b, e * (k.transpose_b ? k.n : k.k), k.transpose_b ? k.n : k.k,
                                   k.transpose_b ? k.k : k.n),
                         .d = part(k.d, begin, rows, k.n),
                         .transpose_b = k.transpose_b,
                         .ragged = true,
                         .bias = bias,
                         .activation = k.activation,
                         .before = part(k.before, begin, rows, k.n),
                         .derivative = k.derivative,
                         .derivative_at = part(k.derivative_at, begin, rows, k.n)});
  });
}

template <>
void run(ThisCpu, Stream& stream, const GroupedWeightGradient& k) {
  const std::int64_t m = k.a.columns(), n = k.b.columns();
  for_groups(k.groups, [&](std::int64_t e, std::int64_t begin, std::int64_t rows) {
    const View d = part(k.d, e * m, m, n);
    if (rows > 0) {
      bloomery::run(ThisCpu{}, stream,
                    Matmul{.a = part(k.a, begin, rows, m),
                           .b = part(k.b, begin, rows, n),
                           .d = d,
                           .transpose_a = true,
                           .add = k.add,
                           .ragged = true});
    } else if (!k.add) {
      stream.fill(d.data, 0, d.bytes());
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const GroupedColumnSum& k) {
  const std::int64_t n = k.x.columns();
  for_groups(k.groups, [&](std::int64_t e, std::int64_t begin, std::int64_t rows) {
    View sums = part(k.sums, e, 1, n);
    sums.shape = {n};
    if (rows > 0) {
      bloomery::run(ThisCpu{}, stream,
                    ColumnSum{.x = part(k.x, begin, rows, n), .sums = sums, .add = k.add});
    } else if (!k.add) {
      stream.fill(sums.data, 0, sums.bytes());
    }
  });
}

}  // namespace bloomery
