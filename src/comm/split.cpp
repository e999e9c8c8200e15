#include "comm/split.h"

#include <algorithm>
#include <sstream>

namespace bloomery {

SplitGroup split_group(HostGroup& host, const std::vector<int>& members, int color, int key,
                       std::uint32_t& next_group) {
  const std::vector<std::string> all =
      host.gather("split", concat(color, " ", key, " ", next_group));
  struct Member {
    int key, rank;
  };
  std::vector<Member> same;
  SplitGroup group;
  for (std::size_t place = 0; place < all.size(); ++place) {
    std::istringstream in(all[place]);
    int its_color = 0, its_key = 0;
    std::uint32_t its_next = 0;
    in >> its_color >> its_key >> its_next;
    group.number = std::max(group.number, its_next);
    if (its_color == color) {
      same.push_back({its_key, members[place]});
    }
  }
  next_group = group.number + 1;
  std::ranges::stable_sort(same, {}, &Member::key);
  for (const Member& member : same) {
    group.members.push_back(member.rank);
  }
  return group;
}

}  // namespace bloomery
