#include "ops/norm/rows_cpu.h"

namespace bloomery {
namespace {

// A block of rows and its partial sums of the parameter gradients.
template <class Stored, class Branch>
class Backward {
 public:
  using Sum = Accumulator<Stored>;
  explicit Backward(const NormBackward& k)
      : k_(k),
        columns_(k.x.columns()),
        gain_(widened<Branch>(k.gain, columns_, k.options.one_plus_gain ? 1 : 0)) {}

  void block(std::int64_t index) const {
    const std::int64_t rows = k_.x.rows(), blocks = k_.partials.shape[0];
    const std::int64_t begin = rows * index / blocks, end = rows * (index + 1) / blocks;
    const std::int64_t width = k_.partials.shape[1];
    Sum* d_gain = k_.partials.as<Sum>() + index * width * columns_;
    std::fill_n(d_gain, width * columns_, Sum{0});
    RowFactors factors(k_.d_pending ? k_.mask : DropoutMask{}, columns_);
    std::vector<Sum> total(padded(columns_));
    for (std::int64_t row = begin; row < end; ++row) {
      const Row at = row_at(row);
      Sum* d_bias = width == 2 ? d_gain + columns_ : nullptr;
      const auto [sum_g, sum_gh] = sums(at, d_gain, d_bias, total.data());
      input_gradient(at, sum_g, sum_gh, total.data());
      write(row, total.data(), factors);
    }
  }

 private:
  struct Row {
    const Stored* x;
    const Branch* dy;
    Sum mean, inverse;
    const Stored* later;
  };

  Row row_at(std::int64_t row) const {
    const std::int64_t first = row * columns_;
    const Sum* statistics = k_.statistics.as<Sum>();
    const bool rms = k_.options.kind == NormKind::rms;
    return {.x = k_.x.as<Stored>() + first,
            .dy = k_.dy.as<Branch>() + first,
            .mean = rms ? Sum{0} : statistics[2 * row],
            .inverse = rms ? statistics[row] : statistics[2 * row + 1],
            .later = k_.later ? k_.later.as<Stored>() + first : nullptr};
  }

  // Writes g and returns sum(g) and sum(g * h), while adding the row to the parameter gradients.
  std::array<Sum, 2> sums(const Row& row, Sum* d_gain, Sum* d_bias, Sum* g) const {
    const auto [x, dy, mean, inverse, later] = row;
    const Sum* gain = gain_.data();
    return two_sums<Sum>(
        columns_, [=](std::int64_t c, Lanes<Sum>& sum_g, Lanes<Sum>& sum_gh, auto part) {
          const Lanes<Sum> h = (load_lanes(x + c, part) - mean) * inverse;
          const Lanes<Sum> upstream = load_lanes(dy + c, part);
          const Lanes<Sum> scaled = upstream * load_lanes(gain + c);
          store_lanes(g + c, scaled);
          sum_g += scaled;
          sum_gh += scaled * h;
          store_lanes(d_gain + c, load_lanes(d_gain + c, part) + upstream * h, part);
          if (d_bias != nullptr) {
            store_lanes(d_bias + c, load_lanes(d_bias + c, part) + upstream, part);
          }
        });
  }

  // total = dx + later, in place of g.
  void input_gradient(const Row& row, Sum sum_g, Sum sum_gh, Sum* total) const {
    const auto [x, dy, mean, inverse, later] = row;
    const auto count = static_cast<Sum>(columns_);
    const Sum mean_g = k_.options.kind == NormKind::rms ? Sum{0} : sum_g / count;
    const Sum mean_gh = sum_gh / count;
    for_lanes<Sum>(columns_, [=](std::int64_t c, auto part) {
      const Lanes<Sum> h = (load_lanes(x + c, part) - mean) * inverse;
      Lanes<Sum> dx = inverse * (load_lanes(total + c) - mean_g - h * mean_gh);
      if (later != nullptr) {
        dx += load_lanes(later + c, part);
      }
      store_lanes(total + c, dx);
    });
  }

  void write(std::int64_t row, const Sum* total, RowFactors& factors) const {
    Stored* const stream = k_.d_stream ? k_.d_stream.as<Stored>() + row * columns_ : nullptr;
    if (stream != nullptr) {
      emit(total, nullptr, stream, k_.add_stream);
    }
    if (k_.d_pending) {
      Branch* const pending = k_.d_pending.as<Branch>() + row * columns_;
      if (stream != nullptr && !k_.add_stream) {
        emit(stream, factors.of(row), pending, k_.add_pending);  // rounded, as settle reads it
      } else {
        emit(total, factors.of(row), pending, k_.add_pending);
      }
    }
  }

  // to (+)= factors * from; null factors mean one.
  template <class From, class To>
  void emit(const From* from, const float* factors, To* to, bool add) const {
    for_lanes<Sum>(columns_, [=](std::int64_t c, auto part) {
      Lanes<Sum> term = load_lanes(from + c, part);
      if (factors != nullptr) {
        term *= load_factors<Sum>(factors + c);
      }
      if (add) {
        term += load_lanes(to + c, part);
      }
      store_lanes(to + c, term, part);
    });
  }

  const NormBackward& k_;
  std::int64_t columns_;
  std::vector<Sum> gain_;
};

constexpr std::int64_t kColumnGrain = 256;

// to[c] (+)= the sum over blocks b, in order, of partials[b * stride + c], for up to kColumnGrain
// columns.
template <class Sum>
void add_blocks(const Sum* partials, std::int64_t blocks, std::int64_t stride, std::int64_t begin,
                std::int64_t end, Sum* to, bool add) {
  Sum sums[kColumnGrain] = {};
  for (std::int64_t block = 0; block < blocks; ++block) {
    const Sum* from = partials + block * stride;
    for (std::int64_t c = begin; c < end; ++c) {
      sums[c - begin] += from[c];
    }
  }
  for (std::int64_t c = begin; c < end; ++c) {
    to[c] = add ? to[c] + sums[c - begin] : sums[c - begin];
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const NormBackward& k) {
  dispatch_stream(k.x.dtype, k.gain.dtype, [&](auto stored, auto branch) {
    const Backward<typename decltype(stored)::type, typename decltype(branch)::type> backward(k);
    stream.device().pool().for_each(k.partials.shape[0],
                                    [&](std::int64_t index) { backward.block(index); });
  });
}

template <>
void run(ThisCpu, Stream& stream, const NormParameterGradient& k) {
  const std::int64_t blocks = k.partials.shape[0], columns = k.partials.columns();
  const std::int64_t stride = k.partials.shape[1] * columns;
  dispatch_floating(k.partials.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Accumulator<T>>) {
      stream.device().pool().for_ranges(
          columns, kColumnGrain, [&](std::int64_t begin, std::int64_t end) {
            const T* partials = k.partials.as<T>();
            add_blocks(partials, blocks, stride, begin, end, k.d_gain.as<T>(), k.add_gain);
            if (k.d_bias) {
              add_blocks(partials + columns, blocks, stride, begin, end, k.d_bias.as<T>(),
                         k.add_bias);
            }
          });
    }
  });
}

}  // namespace bloomery
