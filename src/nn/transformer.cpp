#include "nn/transformer.h"

#include <cmath>

namespace bloomery {

Init weight_init(const TransformerOptions& options, const Init& given, std::int64_t fan_in,
                 std::int64_t fan_out) {
  if (!options.xavier) {
    return given;
  }
  return {Init::Kind::uniform, std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))};
}

}  // namespace bloomery
