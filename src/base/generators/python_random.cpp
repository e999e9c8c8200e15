#include "base/generators/python_random.h"

#include <cmath>
#include <numeric>

namespace bloomery {

// Python draws from a list that shrinks, or, where that would be large, again what it drew before.
std::vector<std::uint32_t> PythonRandom::sample(std::uint32_t count, std::uint32_t wanted) {
  double set_size = 21;
  if (wanted > 5) {
    set_size += std::pow(4, std::ceil(std::log(wanted * 3.0) / std::log(4.0)));
  }
  std::vector<std::uint32_t> chosen;
  if (count <= set_size) {
    std::vector<std::uint32_t> left(count);
    std::iota(left.begin(), left.end(), 0U);
    for (std::uint32_t i = 0; i < wanted; ++i) {
      std::uint32_t& drawn = left[below(count - i)];
      chosen.push_back(drawn);
      drawn = left[count - i - 1];
    }
    return chosen;
  }
  std::vector<bool> taken(count);
  while (chosen.size() < wanted) {
    const std::uint32_t drawn = below(count);
    if (!taken[drawn]) {
      taken[drawn] = true;
      chosen.push_back(drawn);
    }
  }
  return chosen;
}

}  // namespace bloomery
