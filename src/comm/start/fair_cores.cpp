#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "comm/start/join.h"

namespace bloomery {
namespace {

constexpr std::size_t kNameBytes = 64;

// The name of this machine, and a character for each core: whether this process may use it.
std::string place() {
  char name[kNameBytes + 1] = "";
  gethostname(name, kNameBytes);
  std::string text(name);
  text.resize(kNameBytes, ' ');
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    text += CPU_ISSET(core, &set) ? 'x' : '.';
  }
  return text;
}

}  // namespace

int fair_cores(HostGroup& host) {
  const std::string mine = place();
  const auto machine = [](const std::string& text) {
    return std::string_view(text).substr(0, kNameBytes);
  };
  const std::vector<std::string> all = host.gather("cores", mine);
  double cores = 0;
  for (std::size_t core = kNameBytes; core < mine.size(); ++core) {
    if (mine[core] == 'x') {
      cores += 1.0 / static_cast<double>(std::ranges::count_if(all, [&](const std::string& each) {
                 return machine(each) == machine(mine) && each[core] == 'x';
               }));
    }
  }
  return std::max(1, static_cast<int>(std::floor(cores + 1e-6)));
}

}  // namespace bloomery
