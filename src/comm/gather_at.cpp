#include "comm/gather_at.h"

namespace bloomery {

std::vector<std::string> gather_at(HostGroup& host, int root, const std::string& topic,
                                   std::string mine, double seconds) {
  if (auto* const direct = dynamic_cast<GathersAtOne*>(&host)) {
    return direct->gather_at(root, topic, std::move(mine), seconds);
  }
  std::vector<std::string> all = host.gather(topic, std::move(mine), seconds);
  return host.rank() == root ? all : std::vector<std::string>();
}

}  // namespace bloomery
