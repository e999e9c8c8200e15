// `bloomery report`: report.html of a run, drawn again from its metrics.jsonl.
#pragma once

#include "apps/common/command.h"
#include "apps/common/device_choice.h"

namespace bloomery {

int report(const Arguments& arguments, std::ostream& out);

// Lets the newest model of a run's folder go on from each prompt and writes its texts to
// metrics.jsonl, from where a report takes them.
struct SampleChoice {
  std::vector<std::string> prompts;
  std::int64_t tokens = 60;  // of each text
};
void add_samples(const std::string& folder, const SampleChoice& choice, const DeviceChoice& device);

}  // namespace bloomery
