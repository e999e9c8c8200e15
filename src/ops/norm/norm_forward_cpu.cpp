#include <cmath>

#include "ops/norm/rows_cpu.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements per item of work

std::int64_t rows_per_item(std::int64_t columns) {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
}

template <class Sum>
struct Statistics {
  Sum mean, shift;  // the mean is mean + shift: the row is centred in two steps, each exact enough
  Sum inverse;      // 1 / deviation or 1 / rms
};

// The mean is found by a first sum and corrected by the sum of what is left over, so that an
// offset far larger than the deviation costs no accuracy.
template <class Stored, class Sum = Accumulator<Stored>>
Statistics<Sum> row_statistics(const Stored* row, std::int64_t columns,
                               const NormOptions& options) {
  const auto count = static_cast<Sum>(columns);
  const auto epsilon = static_cast<Sum>(options.epsilon);
  if (options.kind == NormKind::rms) {
    const auto [squares, unused] =
        two_sums<Sum>(columns, [=](std::int64_t c, Lanes<Sum>& sum, Lanes<Sum>&, auto part) {
          const Lanes<Sum> x = load_lanes(row + c, part);
          sum += x * x;
        });
    return {0, 0, 1 / std::sqrt(squares / count + epsilon)};
  }
  const auto [total, unused] =
      two_sums<Sum>(columns, [=](std::int64_t c, Lanes<Sum>& sum, Lanes<Sum>&, auto part) {
        sum += load_lanes(row + c, part);
      });
  const Sum mean = total / count;
  const auto [rest, squares] = two_sums<Sum>(
      columns, [=](std::int64_t c, Lanes<Sum>& sum, Lanes<Sum>& sum_of_squares, auto part) {
        const Lanes<Sum> centred = inside<Sum>(load_lanes(row + c, part) - mean, part);
        sum += centred;
        sum_of_squares += centred * centred;
      });
  const Sum shift = rest / count;
  const Sum variance = std::max(squares / count - shift * shift, Sum{0});
  return {mean, shift, 1 / std::sqrt(variance + epsilon)};
}

template <class Stored, class Branch>
class Forward {
 public:
  using Sum = Accumulator<Stored>;
  explicit Forward(const NormForward& k)
      : k_(k),
        columns_(k.stream.columns()),
        gain_(widened<Branch>(k.gain, columns_, k.options.one_plus_gain ? 1 : 0)),
        bias_(widened<Branch>(k.bias, columns_, 0)) {}

  void rows(std::int64_t begin, std::int64_t end) const {
    RowFactors factors(k_.mask, columns_);
    for (std::int64_t row = begin; row < end; ++row) {
      const Stored* x = k_.stream.as<Stored>() + row * columns_;
      if (k_.pending) {
        Stored* out = k_.out.as<Stored>() + row * columns_;
        add_pending_row(x, k_.pending.as<Branch>() + row * columns_, factors.of(row), out,
                        columns_);
        x = out;
      }
      const Statistics<Sum> statistics = row_statistics(x, columns_, k_.options);
      write(x, statistics, k_.y.as<Branch>() + row * columns_);
      keep(statistics, row);
    }
  }

 private:
  void write(const Stored* row, const Statistics<Sum>& statistics, Branch* y) const {
    const auto [mean, shift, inverse] = statistics;
    const Sum *gain = gain_.data(), *bias = bias_.data();
    for_lanes<Sum>(columns_, [=](std::int64_t c, auto part) {
      const Lanes<Sum> h = (load_lanes(row + c, part) - mean - shift) * inverse;
      store_lanes(y + c, h * load_lanes(gain + c) + load_lanes(bias + c), part);
    });
  }

  void keep(const Statistics<Sum>& statistics, std::int64_t row) const {
    if (!k_.statistics) {
      return;
    }
    if (k_.options.kind == NormKind::rms) {
      k_.statistics.as<Sum>()[row] = statistics.inverse;
    } else {
      k_.statistics.as<Sum>()[2 * row] = statistics.mean + statistics.shift;
      k_.statistics.as<Sum>()[2 * row + 1] = statistics.inverse;
    }
  }

  const NormForward& k_;
  std::int64_t columns_;
  std::vector<Sum> gain_, bias_;
};

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const NormForward& k) {
  dispatch_stream(k.stream.dtype, k.gain.dtype, [&](auto stored, auto branch) {
    const Forward<typename decltype(stored)::type, typename decltype(branch)::type> forward(k);
    stream.device().pool().for_ranges(
        k.stream.rows(), rows_per_item(k.stream.columns()),
        [&](std::int64_t begin, std::int64_t end) { forward.rows(begin, end); });
  });
}

template <>
void run(ThisCpu, Stream& stream, const Settle& k) {
  const std::int64_t columns = k.stream.columns();
  dispatch_stream(k.stream.dtype, k.pending.dtype, [&](auto stored, auto branch) {
    using Stored = typename decltype(stored)::type;
    using Branch = typename decltype(branch)::type;
    stream.device().pool().for_ranges(
        k.stream.rows(), rows_per_item(columns), [&](std::int64_t begin, std::int64_t end) {
          RowFactors factors(k.mask, columns);
          for (std::int64_t row = begin; row < end; ++row) {
            add_pending_row(k.stream.as<Stored>() + row * columns,
                            k.pending.as<Branch>() + row * columns, factors.of(row),
                            k.out.as<Stored>() + row * columns, columns);
          }
        });
  });
}

}  // namespace bloomery
