#include "ops/fake_quantization/fake_quantization.h"

namespace bloomery {

GroupPlaces group_places(const std::string& name, const Box& box, std::int64_t groups) {
  const std::int64_t all = box.global.numel();
  check(groups >= 1 && all % groups == 0, name, " has ", all, " numbers, which ", groups,
        " groups cannot divide equally; give quantize_groups that divide them");
  GroupPlaces places{.groups = groups, .group_size = all / groups, .run = all, .stride = all};
  std::int64_t inner = 1;
  for (int dim = box.global.rank() - 1; dim >= 0; --dim) {
    if (box.extent[dim] != box.global[dim]) {
      check(places.run == all, name, " is cut along several dimensions");
      places.run = box.extent[dim] * inner;
      places.stride = box.global[dim] * inner;
      places.offset = box.offset[dim] * inner;
    }
    inner *= box.global[dim];
  }
  places.count = box.extent.numel();
  return places;
}

GroupPlaces one_group(std::int64_t count) {
  return {.group_size = count, .run = count, .stride = count, .count = count};
}

}  // namespace bloomery
