#include "checkpoint/group.h"

#include "comm/gather_at.h"

namespace bloomery {
namespace {

constexpr double kNoDeadline = 30 * 24 * 3600;

}  // namespace

SaveGroup single_rank_group() {
  return {.rank = 0, .size = 1, .gather = [](const std::string& mine) {
            return std::vector<std::string>{mine};
          }};
}

SaveGroup save_group(HostGroup& host) {
  if (host.size() == 1) {
    return single_rank_group();
  }
  return {
      .rank = host.rank(),
      .size = host.size(),
      .gather =
          [&host](const std::string& mine) { return host.gather("checkpoint", mine, kNoDeadline); },
      .gather_at_first =
          [&host](std::string mine) {
            return gather_at(host, 0, "manifest of a checkpoint", std::move(mine), kNoDeadline);
          }};
}

}  // namespace bloomery
