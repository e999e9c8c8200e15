#include <algorithm>

#include "ops/matmul/own_packing_cpu.h"
#include "ops/matmul/own_product.h"
#include "tensor/tensor.h"

namespace bloomery {
namespace {

// Columns of b that are packed together: with the rows of a panel they fit L3.
constexpr std::int64_t kSlabColumns = 4096;

std::int64_t parts_of(std::int64_t extent, std::int64_t part) { return (extent + part - 1) / part; }

// Panels of about kPanelDepth steps, at least one.
std::int64_t num_panels(std::int64_t k) {
  return std::max<std::int64_t>(1, parts_of(k - (kMostDepth - kPanelDepth), kPanelDepth));
}

// The first of part `index` of `count` parts of [0, extent) that differ by at most one.
std::int64_t start_of(std::int64_t index, std::int64_t count, std::int64_t extent) {
  return extent * index / count;
}

template <class In>
class PackedProduct {
 public:
  using Real = Accumulator<In>;

  PackedProduct(Stream& stream, const OwnProduct& product)
      : stream_(stream),
        p_(product),
        s_(product.shape),
        a_{static_cast<const In*>(product.a), product.shape.lda},
        b_{static_cast<const In*>(product.b), product.shape.ldb},
        block_columns_(round_up(std::min(product.block_columns, s_.n), kStep)),
        slab_columns_(std::max<std::int64_t>(1, kSlabColumns / block_columns_) * block_columns_),
        num_panels_(num_panels(s_.k)) {}

  void run() {
    const std::int64_t widest = round_up(std::min(slab_columns_, s_.n), kStep);
    packed_b_ =
        Tensor::empty(stream_, dtype_of<Real>, {std::min<std::int64_t>(s_.k, kMostDepth), widest});
    if (p_.c == nullptr) {
      sums_ = Tensor::empty(stream_, dtype_of<Real>, {s_.m, widest});
    }
    for (std::int64_t j = 0; j < s_.n; j += slab_columns_) {
      const Slab slab{j, std::min(slab_columns_, s_.n - j)};
      for (std::int64_t panel = 0; panel < num_panels_; ++panel) {
        const std::int64_t k = start_of(panel, num_panels_, s_.k);
        const Panel here{k, start_of(panel + 1, num_panels_, s_.k) - k, panel > 0 || s_.add,
                         panel + 1 == num_panels_};
        pack_b(slab, here);
        multiply(slab, here);
      }
    }
  }

 private:
  static constexpr std::int64_t kStep = kStripColumns<Real>;
  struct Slab {
    std::int64_t j, columns;
  };
  // Rows [i, i + count), and where those start that come after them.
  struct Rows {
    std::int64_t i, count, next;
  };
  // Columns [first, first + count) of the slab that starts at `slab`; if `fresh`, this thread has
  // not used them yet.
  struct Columns {
    std::int64_t slab, first, count;
    bool fresh;
  };
  struct Panel {
    std::int64_t k, depth;
    bool add, last;
  };

  Real* packed_b(std::int64_t column, const Panel& panel) const {
    return static_cast<Real*>(packed_b_.data()) + column * panel.depth;
  }

  // Items follow the order in which b is stored: strips of columns, or a few rows of all strips.
  void pack_b(const Slab& slab, const Panel& panel) {
    constexpr std::int64_t kRows = 16;
    const std::int64_t strips = parts_of(slab.columns, kStep);
    const std::int64_t items = s_.transpose_b ? strips : parts_of(panel.depth, kRows);
    stream_.device().pool().for_each(items, [&](std::int64_t item) {
      if (s_.transpose_b) {
        return pack_strip_of_b(slab, panel, item, 0, panel.depth);
      }
      const std::int64_t first = item * kRows, rows = std::min(kRows, panel.depth - first);
      for (std::int64_t strip = 0; strip < strips; ++strip) {
        pack_strip_of_b(slab, panel, strip, first, rows);
      }
    });
  }

  // Rows [first, first + rows) of the panel.
  void pack_strip_of_b(const Slab& slab, const Panel& panel, std::int64_t strip, std::int64_t first,
                       std::int64_t rows) {
    const std::int64_t column = strip * kStep, j = slab.j + column, k = panel.k + first;
    const std::int64_t columns = std::min(kStep, slab.columns - column);
    Real* const to = packed_b(column, panel) + first * kStep;
    if (s_.transpose_b) {
      pack_columns_transposed(Stored<In>{b_.at(j, k), b_.ld}, columns, rows, to);
    } else {
      pack_columns(Stored<In>{b_.at(k, j), b_.ld}, columns, rows, to);
    }
  }

  void multiply(const Slab& slab, const Panel& panel) {
    const std::int64_t row_blocks = parts_of(s_.m, p_.block_rows);
    const std::int64_t column_blocks = parts_of(slab.columns, block_columns_);
    ThreadPool& pool = stream_.device().pool();
    pool.for_each(row_blocks * column_blocks, [&](std::int64_t index) {
      const std::int64_t column = index / row_blocks * block_columns_;
      const std::int64_t i = index % row_blocks * p_.block_rows;
      // Most likely this thread's next block, and its first of these columns: guesses that decide
      // about prefetching alone.
      const std::int64_t next = (index + pool.num_threads()) % row_blocks * p_.block_rows;
      const bool fresh = index % row_blocks < pool.num_threads();
      multiply_block({i, std::min(p_.block_rows, s_.m - i), next},
                     {slab.j, column, std::min(block_columns_, slab.columns - column), fresh},
                     panel);
    });
  }

  void multiply_block(const Rows& rows, Columns columns, const Panel& panel) {
    const Tensor scratch = Tensor::empty(stream_, dtype_of<Real>, {kPackedStrip});
    Real* const packed = static_cast<Real*>(scratch.data());
    const std::int64_t strips = parts_of(rows.count, kStripRows);
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t i = rows.i + start_of(strip, strips, rows.count);
      const std::int64_t end = rows.i + start_of(strip + 1, strips, rows.count);
      const Rows strip_rows{i, end - i, strip + 1 < strips ? end : rows.next};
      pack_a(strip_rows, panel, packed);
      Real* const c = c_at(i, columns);
      sweep(packed, strip_rows, columns, panel, c);
      columns.fresh = false;
      if (panel.last && p_.finished) {
        p_.finished({i, columns.slab + columns.first, end - i, columns.count, c, ldc()});
      }
    }
  }

  std::int64_t ldc() const { return sums_ ? sums_.shape().back() : s_.ldc; }
  Real* c_at(std::int64_t i, const Columns& columns) const {
    return sums_ ? static_cast<Real*>(sums_.data()) + i * ldc() + columns.first
                 : static_cast<Real*>(p_.c) + i * ldc() + columns.slab + columns.first;
  }

  void pack_a(const Rows& rows, const Panel& panel, Real* to) {
    if (s_.transpose_a) {
      pack_rows_transposed(Stored<In>{a_.at(panel.k, rows.i), a_.ld}, rows.count, s_.m - rows.i,
                           panel.depth, to);
    } else {
      pack_rows(Stored<In>{a_.at(rows.i, panel.k), a_.ld}, rows.count, panel.depth, to);
    }
  }

  // What call number `call` of `calls` in a sweep prefetches of the strip of rows at i, and
  // `beside`.
  Ahead ahead_of(std::int64_t i, std::int64_t call, std::int64_t calls, const Panel& panel,
                 const Real* beside) const {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(In));
    const auto place = [](const In* at) { return reinterpret_cast<const char*>(at); };
    if (s_.transpose_a) {  // the last elements of two rows; the first came with the strip before
      const In* const at = a_.at(panel.k + panel.depth * call / calls,
                                 std::min<std::int64_t>(i + kDepthStep<Real>, s_.m) - 1);
      return {place(at), 2 * a_.ld * kBytes, a_.ld * kBytes, beside};
    }
    const In* const at = a_.at(std::min(i + kStripRows * call / calls, s_.m - 1), panel.k);
    return {place(at), Ahead::kGroup * kBytes, a_.ld * kBytes, beside};
  }

  // All columns of a block for one strip of rows.
  void sweep(const Real* a, const Rows& rows, const Columns& columns, const Panel& panel, Real* c) {
    const auto kernel = columns.fresh ? strip_kernel<Real, true>(rows.count)
                                      : strip_kernel<Real, false>(rows.count);
    const bool finishes = panel.last && p_.beside != nullptr;
    const Real* beside =
        finishes ? static_cast<const Real*>(p_.beside) + (c - static_cast<Real*>(p_.c)) : c;
    const std::int64_t strips = parts_of(columns.count, kStep);
    for (std::int64_t strip = 0; strip < strips; ++strip, c += kStep, beside += kStep) {
      const Ahead ahead = ahead_of(rows.next, strip, strips, panel, beside);
      const Real* const b = packed_b(columns.first + strip * kStep, panel);
      const std::int64_t used = columns.count - strip * kStep;
      if (used >= kStep) {
        kernel(a, b, panel.depth, c, ldc(), panel.add, ahead);
        continue;
      }
      Real edge[kStripRows * kStep];
      kernel(a, b, panel.depth, edge, kStep, false, ahead);
      for (std::int64_t r = 0; r < rows.count; ++r) {
        for (std::int64_t l = 0; l < used; ++l) {
          Real& to = c[r * ldc() + l];
          to = panel.add ? to + edge[r * kStep + l] : edge[r * kStep + l];
        }
      }
    }
  }

  static constexpr std::int64_t kPackedStrip = kDepthStep<Real> * kMostDepth;

  Stream& stream_;
  const OwnProduct& p_;
  const ProductShape& s_;
  const Stored<In> a_, b_;
  const std::int64_t block_columns_, slab_columns_, num_panels_;
  Tensor packed_b_;
  Tensor sums_;  // of a slab, where there is no c
};

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const OwnProduct& product) {
  if (product.shape.m == 0 || product.shape.n == 0) {
    return;
  }
  dispatch_floating(product.shape.input, [&](auto tag) {
    PackedProduct<typename decltype(tag)::type>(stream, product).run();
  });
}

}  // namespace bloomery
