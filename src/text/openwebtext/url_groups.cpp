#include "text/openwebtext/url_groups.h"

#include <algorithm>

namespace bloomery {

void UrlGroups::add(const std::vector<std::string>& together) {
  std::vector<std::size_t> known;
  for (const std::string& id : together) {
    const auto found = index_of_.find(id);
    if (found == index_of_.end()) continue;
    if (std::ranges::find(known, found->second) == known.end()) known.push_back(found->second);
  }
  if (known.empty()) {
    known.push_back(members_.size());
    members_.emplace_back();
  }
  const std::size_t index = known[0];
  for (const std::string& id : together) {
    if (index_of_.try_emplace(id, index).second) members_[index].push_back(id);
  }
  for (std::size_t i = 1; i < known.size(); ++i) {
    for (std::string& id : members_[known[i]]) {
      index_of_[id] = index;
      members_[index].push_back(std::move(id));
    }
    members_[known[i]].clear();
  }
}

std::vector<UrlGroups::Group> UrlGroups::groups() const {
  std::vector<Group> found;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].size() > 1) found.push_back({i, members_[i]});
  }
  return found;
}

}  // namespace bloomery
