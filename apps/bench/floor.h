// The least time that a training step could take here: its products and its attention as a library
// does them alone, and all other bytes that it must move at the rate of a copy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/bench/step_work.h"
#include "train/report/trace.h"

namespace bloomery {

struct Floor {
  struct Part {
    std::string what;
    int count = 0;       // launches
    double seconds = 0;  // all together
    double work = 0;     // likewise: operations, bytes, or 0
  };
  std::vector<Part> products, attention, bytes;
  std::string attention_by;
  double copy_rate = 0;  // bytes a second
  std::map<ProfileRow, double> by_row;

  double seconds() const;
};

// Takes about `seconds` twice for each part.
Floor measure_floor(Stream& stream, const StepWork& work, double seconds);

std::string to_text(const Floor& floor, double step_seconds);
// The rows of a profile, each beside its part of the floor.
std::string ceilings_text(const Floor& floor, const TimeTable& table);

}  // namespace bloomery
