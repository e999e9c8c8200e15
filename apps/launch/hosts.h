// On which machines the ranks of a launch run.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

struct HostSlots {
  std::string name;
  int slots = 1;
};

// Lines `host slots=N`, as DeepSpeed and MPI read them; # starts a comment. A host alone has one
// slot. `place` names the text in errors.
std::vector<HostSlots> parse_hostfile(const std::string& text, const std::string& place);

bool is_this_machine(const std::string& host);

// A word as a shell reads it back.
std::string quoted(const std::string& word);

}  // namespace bloomery
