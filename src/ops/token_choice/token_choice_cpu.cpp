#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/common/convert.h"
#include "ops/token_choice/token_choice.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16;  // rows

// The chosen tokens of one sequence, in order.
void draw(const DrawKeptTokens& k, std::int64_t sequence) {
  const std::int64_t sample = k.samples.as<std::int64_t>()[sequence];
  std::vector<std::uint64_t> order(static_cast<std::size_t>(k.length));
  for (std::int64_t place = 0; place < k.length; ++place) {
    order[place] = static_cast<std::uint64_t>(token_order(k.key, sample, place)) << 32 |
                   static_cast<std::uint64_t>(place);
  }
  std::nth_element(order.begin(), order.begin() + (k.kept - 1), order.end());
  const std::uint64_t last = order[k.kept - 1];
  std::int32_t* const rows = k.rows.as<std::int32_t>();
  std::int32_t* const number = k.number.as<std::int32_t>() + sequence * k.length;
  std::fill(number, number + k.length, -1);
  for (const std::uint64_t each : order) {
    if (each <= last) {
      number[static_cast<std::uint32_t>(each)] = 0;
    }
  }
  auto next = static_cast<std::int32_t>(sequence * k.kept);
  for (std::int64_t place = 0; place < k.length; ++place) {
    if (number[place] == 0) {
      rows[next] = static_cast<std::int32_t>(sequence * k.length + place);
      number[place] = next++;
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const DrawKeptTokens& k) {
  stream.device().pool().for_ranges(k.samples.numel(), 1,
                                    [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t s = begin; s < end; ++s) {
                                        draw(k, s);
                                      }
                                    });
}

template <>
void run(ThisCpu, Stream&, const ChosenNumbers& k) {
  const std::int32_t* const rows = k.rows.as<std::int32_t>();
  for (std::int64_t i = 0; i < k.rows.numel(); ++i) {
    const std::int32_t token = rows[i];
    const std::int64_t sequence = i / k.kept;
    const std::int32_t* const begin = rows + sequence * k.kept;
    const auto chosen_before = [&](std::int32_t place) {
      const auto row = static_cast<std::int32_t>(sequence * k.length + place);
      return static_cast<std::int32_t>(std::lower_bound(begin, begin + k.kept, row) - begin);
    };
    if (k.positions.data != nullptr) {
      k.chosen_positions.as<std::int32_t>()[i] = k.positions.as<std::int32_t>()[token];
    }
    if (k.key_begin.data != nullptr) {
      k.chosen_begin.as<std::int32_t>()[i] = chosen_before(k.key_begin.as<std::int32_t>()[token]);
      k.chosen_end.as<std::int32_t>()[i] = chosen_before(k.key_end.as<std::int32_t>()[token]);
    }
  }
}

template <>
void run(ThisCpu, Stream& stream, const SelectRows& k) {
  const std::int64_t columns = k.to.shape[1];
  const std::int64_t rows = k.from.data != nullptr ? k.from.shape[0] : 0;
  dispatch_floating(k.to.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    const auto source = [&](std::int64_t i) -> const Real* {
      const std::int64_t index = k.index.as<std::int32_t>()[i];
      const std::int64_t row = index - k.first;
      if (k.from.data != nullptr && index >= 0 && row >= 0 && row < rows) {
        return k.from.template as<Real>() + row * columns;
      }
      return k.otherwise.data != nullptr && index < 0
                 ? k.otherwise.template as<Real>() + i * columns
                 : nullptr;
    };
    stream.device().pool().for_ranges(
        k.to.shape[0], kGrain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const Real* const from = source(i);
            Real* const to = k.to.template as<Real>() + i * columns;
            if (k.add && from != nullptr) {
              for (std::int64_t c = 0; c < columns; ++c) {
                store(to + c, load(to + c) + load(from + c));
              }
            } else if (!k.add && from != nullptr) {
              std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(Real));
            } else if (!k.add) {
              std::memset(to, 0, static_cast<std::size_t>(columns) * sizeof(Real));
            }
          }
        });
  });
}

}  // namespace bloomery
