// The schedules of learning rate and weight decay as a checkpoint keeps them, so that resuming with
// other ones is noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "optim/schedule.h"

namespace bloomery {

std::string style_name(DecayStyle style);  // as --lr-decay-style has it: "inverse-square-root"

std::string to_json(const ScheduleOptions& options);
// An Error, starting with `place`, when a member is missing or malformed.
ScheduleOptions schedule_from_json(std::string_view json, const std::string& place);

// What differs, one line each: "peak learning rate: 0.001 here, 0.002 in the checkpoint".
std::vector<std::string> schedule_differences(const ScheduleOptions& here,
                                              const ScheduleOptions& stored);

}  // namespace bloomery
