// Messages of all ranks for one of them: what is long, such as manifests of large models, is not
// brought to ranks that do not need it.
#pragma once

#include <string>
#include <vector>

#include "comm/host_group.h"

namespace bloomery {

// A group that can bring messages to one rank alone. Others give them to all.
class GathersAtOne {
 public:
  virtual ~GathersAtOne() = default;
  virtual std::vector<std::string> gather_at(int root, const std::string& topic, std::string mine,
                                             double seconds) = 0;
};

// As HostGroup::gather(), but only rank `root` gets the messages and waits for them; the others get
// none.
std::vector<std::string> gather_at(HostGroup& host, int root, const std::string& topic,
                                   std::string mine, double seconds = 0);

}  // namespace bloomery
