// A communicator whose calls a FlightRecorder writes down, over any transport.
#pragma once

#include <memory>
#include <string>

#include "comm/watch/flight_recorder.h"

namespace bloomery {

// `world` has all ranks; groups that are split off are recorded too, and so is the control plane of
// each. The recorder must outlive the communicators and the streams that they are called on.
std::unique_ptr<Communicator> record_calls(std::unique_ptr<Communicator> world,
                                           FlightRecorder& recorder);

FlightRecorder* recorder_of(Communicator& group);  // null: it is not recorded
// How reports name the group.
void name_group(Communicator& group, const std::string& name);

}  // namespace bloomery
