// Groups of URLs, or other ids, that belong to the same text.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace bloomery {

// As Megatron's group_duplicate_url: ids that come together belong to one group, and so do the
// groups that they were in. Ids of a group are in the order in which they came.
class UrlGroups {
 public:
  void add(const std::vector<std::string>& together);

  struct Group {
    std::size_t index = 0;  // the original's number of it
    std::vector<std::string> ids;
  };
  std::vector<Group> groups() const;  // of two ids or more

 private:
  std::unordered_map<std::string, std::size_t> index_of_;
  std::vector<std::vector<std::string>> members_;  // empty: went into another
};

}  // namespace bloomery
