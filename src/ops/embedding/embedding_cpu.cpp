#include <algorithm>
#include <vector>

#include "ops/common/convert.h"
#include "ops/embedding/embedding.h"

namespace bloomery {
namespace {

// The row that token t selects among `num_rows`, or -1.
std::int64_t row_of(const RowIds& rows, std::int64_t t, std::int64_t num_rows, const char* what) {
  const std::int64_t id = rows.ids.as<std::int32_t>()[t];
  check(id >= 0 && id < rows.limit, "embedding: ", what, " id ", id, " of token ", t,
        " is outside [0, ", rows.limit, ")");
  const std::int64_t row = id - rows.first;
  return row >= 0 && row < num_rows ? row : -1;
}

// y = the sum of rows, in order.
template <int kCount, class From, class To>
void write_sum(const From* const (&rows)[3], To* y, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    Accumulator<From> sum = kCount > 0 ? load(rows[0] + i) : Accumulator<From>(0);
    for (int row = 1; row < kCount; ++row) {
      sum += load(rows[row] + i);
    }
    store(y + i, static_cast<Accumulator<To>>(sum));
  }
}

template <class From, class To>
void write_row(const From* const (&rows)[3], int count, To* y, std::int64_t width) {
  switch (count) {
    case 0:
      return write_sum<0>(rows, y, width);
    case 1:
      return write_sum<1>(rows, y, width);
    case 2:
      return write_sum<2>(rows, y, width);
    default:
      return write_sum<3>(rows, y, width);
  }
}

template <class From, class To>
void forward(Stream& stream, const EmbeddingForward& k) {
  const std::int64_t width = k.table.columns();
  constexpr std::int64_t kTokensPerTask = 32;
  stream.device().pool().for_ranges(
      k.y.rows(), kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
          const From* rows[3] = {};
          int count = 0;
          const auto add = [&](const ConstView& table, const RowIds& ids, const char* what) {
            if (const std::int64_t row = table ? row_of(ids, t, table.rows(), what) : -1;
                row >= 0) {
              rows[count++] = table.as<From>() + row * width;
            }
          };
          add(k.table, k.tokens, "token");
          add(k.position_table, k.positions, "position");
          add(k.type_table, k.types, "token type");
          write_row(rows, count, k.y.as<To>() + t * width, width);
        }
      });
}

// Tokens grouped by row in their own order (counting sort): those of row r are
// tokens[begin[r]] ... tokens[begin[r + 1] - 1].
struct Groups {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> tokens;
};

Groups group(const RowIds& rows, std::int64_t num_rows) {
  const std::int64_t num_tokens = rows.ids.numel();
  Groups groups;
  groups.begin.assign(static_cast<std::size_t>(num_rows + 1), 0);
  std::vector<std::int64_t> row(static_cast<std::size_t>(num_tokens));
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    row[t] = row_of(rows, t, num_rows, "row");
    if (row[t] >= 0) {
      ++groups.begin[row[t] + 1];
    }
  }
  for (std::int64_t r = 0; r < num_rows; ++r) {
    groups.begin[r + 1] += groups.begin[r];
  }
  groups.tokens.resize(static_cast<std::size_t>(groups.begin[num_rows]));
  std::vector<std::int64_t> next(groups.begin.begin(), groups.begin.end() - 1);
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    if (row[t] >= 0) {
      groups.tokens[next[row[t]]++] = t;
    }
  }
  return groups;
}

template <class From>
void add_row(const From* __restrict__ from, Accumulator<From>* __restrict__ sum,
             std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    sum[i] += load(from + i);
  }
}

// Sums of a row are taken in the accumulation dtype, whatever the table's.
template <class From, class Table>
void backward(Stream& stream, const EmbeddingBackward& k) {
  using Sum = Accumulator<From>;
  constexpr std::int64_t kRowsPerTask = 64;
  constexpr bool kInPlace = std::is_same_v<Table, Sum>;
  const std::int64_t num_rows = k.grad_table.rows(), width = k.grad_table.columns();
  const Groups groups = group(k.rows, num_rows);
  const auto add_tokens = [&](std::int64_t row, Sum* sum) {
    for (std::int64_t i = groups.begin[row]; i < groups.begin[row + 1]; ++i) {
      add_row(k.grad_y.as<From>() + groups.tokens[i] * width, sum, width);
    }
  };
  stream.device().pool().for_ranges(
      num_rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Sum> sums(kInPlace ? 0 : static_cast<std::size_t>(width));
        for (std::int64_t row = begin; row < end; ++row) {
          Table* const to = k.grad_table.as<Table>() + row * width;
          if constexpr (kInPlace) {
            if (!k.add) {
              std::fill_n(to, width, Sum(0));
            }
            add_tokens(row, to);
          } else {
            for (std::int64_t i = 0; i < width; ++i) {
              sums[i] = k.add ? static_cast<Sum>(load(to + i)) : Sum(0);
            }
            add_tokens(row, sums.data());
            for (std::int64_t i = 0; i < width; ++i) {
              store(to + i, static_cast<Accumulator<Table>>(sums[i]));
            }
          }
        }
      });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const EmbeddingForward& k) {
  dispatch_floating(k.table.dtype, [&](auto tag) {
    using From = typename decltype(tag)::type;
    if (k.y.dtype == k.table.dtype) {
      forward<From, From>(stream, k);
    } else {
      forward<From, Accumulator<From>>(stream, k);
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const EmbeddingBackward& k) {
  dispatch_floating(k.grad_y.dtype, [&](auto tag) {
    using From = typename decltype(tag)::type;
    if (k.grad_table.dtype == DType::bf16) {
      backward<From, bfloat16>(stream, k);
    } else {
      backward<From, Accumulator<From>>(stream, k);
    }
  });
}

}  // namespace bloomery
