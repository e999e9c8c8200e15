// Slurm's short forms of lists.
#pragma once

#include <string>

namespace bloomery {

// The first of "node[01-04,7],other": "node01".
std::string first_node(const std::string& list);

// The count of entry `index` of "4(x2),3": 4, 4, 3. 0: the list has no such entry.
int entry_of_counts(const std::string& list, int index);

}  // namespace bloomery
