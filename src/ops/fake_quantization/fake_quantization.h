// Numbers rounded to grids of few bits, for training that is to end in few bits (DeepSpeed's
// compression): values only, no codes are stored.
#pragma once

#include "device/launch.h"
#include "tensor/box.h"
#include "tensor/tensor.h"

namespace bloomery {

// A tensor, flattened, is divided into equal groups, each with a grid of its own. Of the part of it
// that is held here, or of a range of that part, a group has consecutive elements.
struct GroupPlaces {
  std::int64_t groups = 1, group_size = 0;       // of the whole tensor
  std::int64_t run = 0, stride = 0, offset = 0;  // elements held here: `run` of every `stride`
  std::int64_t first = 0, count = 0;             // the range of them

  // Where group number `group` begins in the range.
  constexpr std::int64_t begin(std::int64_t group) const {
    const std::int64_t at = group * group_size;
    const std::int64_t inside = at % stride - offset;
    const std::int64_t held = inside < 0 ? 0 : inside > run ? run : inside;
    const std::int64_t place = at / stride * run + held - first;
    return place < 0 ? 0 : place > count ? count : place;
  }
};

// Of a part that is cut along one dimension at most. An Error where the groups are not equal.
GroupPlaces group_places(const std::string& name, const Box& box, std::int64_t groups);
// Of a whole tensor that is one group.
GroupPlaces one_group(std::int64_t count);

// The ranges of the groups: of each the negative of the smallest number and the largest one, so
// that maxima over ranks are the whole's. Of groups without elements here: minus infinity.
struct FindRanges {
  ConstView x;
  View ranges;  // two of each group, in the accumulation dtype of x
  GroupPlaces places;
  bool raise = false;  // ranges are raised to these
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const FindRanges&);
void run(OnCuda, Stream&, const FindRanges&);

// y: the numbers of x on the grids of their groups. May be x itself.
struct FakeQuantize {
  ConstView x;
  View y;
  ConstView ranges;  // as FindRanges gives them
  GroupPlaces places;
  int bits = 8;
  bool symmetric = true;
  bool own_ranges = true;  // of x itself: grids are computed in its dtype, else in fp32
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const FakeQuantize&);
void run(OnCuda, Stream&, const FakeQuantize&);

// to = what `range` becomes when it follows `seen` (grid.h), which may be `range` itself; `largest`
// is raised to `seen` where it is given. All fp32, two of each range.
struct FollowRanges {
  ConstView range, seen;
  View to, largest;
  float momentum = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const FollowRanges&);
void run(OnCuda, Stream&, const FollowRanges&);

}  // namespace bloomery
