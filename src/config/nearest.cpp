#include "config/nearest.h"

#include <algorithm>

namespace bloomery {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the optimal-alignment table: distances of prefixes of a to all prefixes of b.
  std::vector<int> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = static_cast<int>(j);
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = row;
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view misspelled, const std::vector<std::string>& names) {
  // A third of the letters may be wrong, so that short words do not match everything.
  int best = static_cast<int>(std::max<std::size_t>(1, misspelled.size() / 3)) + 1;
  std::string found;
  for (const std::string& name : names) {
    const int distance = edit_distance(misspelled, name);
    if (distance < best) {
      best = distance;
      found = name;
    }
  }
  return found;
}

std::string suggestion(std::string_view misspelled, const std::vector<std::string>& names) {
  const std::string name = nearest(misspelled, names);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace bloomery
