#include "comm/start/node_list.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace bloomery {

std::string first_node(const std::string& list) {
  const std::size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) {
    return list.substr(0, comma);
  }
  const std::size_t end = list.find_first_of("-,]", bracket);
  const std::size_t close = list.find(']', bracket);
  if (end == std::string::npos || close == std::string::npos) {
    return {};
  }
  const std::string rest = list.substr(close + 1);  // "node[1-2]-ib" goes on behind the bracket
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + first_node(rest);
}

int entry_of_counts(const std::string& list, int index) {
  std::istringstream in(list);
  for (std::string entry; std::getline(in, entry, ',');) {
    const std::size_t times = entry.find("(x");
    const int repeated =
        times == std::string::npos ? 1 : std::max(1, std::atoi(entry.c_str() + times + 2));
    if (index < repeated) {
      return std::atoi(entry.c_str());
    }
    index -= repeated;
  }
  return 0;
}

}  // namespace bloomery
