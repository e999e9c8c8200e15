// A command as one of several processes that a launcher started together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/common/device_choice.h"
#include "comm/start/join.h"
#include "comm/watch/watch.h"

namespace bloomery {

// What a rank that is a process has while it runs.
struct RankProcess {
  const JoinedWorld& joined;
  ProcessWatch& watch;
  std::filesystem::path report_folder;  // for what is known of all ranks when one is missing
};

// Runs `body` with the ranks joined, and sees to it that the failure of one rank ends all, with the
// cause and the same exit code. Only one rank says it, and where all ranks stood if one is missing.
int run_joined(const StartFacts& facts, const std::function<int(RankProcess&)>& body);

// Whether reading the options went well on all ranks, and whether they have the same. `problem` and
// `options` are this rank's. False: a rank had a problem that another one says; this one's is
// thrown.
bool agree_on_options(HostGroup& host, const std::string& problem, const std::string& options);

// What this rank computes on: a GPU of its own where there are several, its part of the cores.
DeviceOptions rank_device(const DeviceChoice& choice, bool gpu_given, const StartFacts& facts,
                          HostGroup& host);

}  // namespace bloomery
