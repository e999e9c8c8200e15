#include "apps/launch/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"

namespace bloomery {
namespace {

int slots_of(const std::string& word, const std::string& place) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  int slots = 0;
  if (equals != std::string::npos && (name == "slots" || name == "max_slots")) {
    std::from_chars(word.data() + equals + 1, word.data() + word.size(), slots);
  }
  check(slots > 0, place, ": '", word, "' is not slots=N with a number above 0");
  return slots;
}

}  // namespace

std::vector<HostSlots> parse_hostfile(const std::string& text, const std::string& place) {
  std::vector<HostSlots> hosts;
  std::set<std::string> names;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    HostSlots host;
    if (!(words >> host.name)) {
      continue;
    }
    const std::string where = concat(place, ":", number);
    for (std::string word; words >> word;) {
      host.slots = slots_of(word, where);
    }
    check(names.insert(host.name).second, where, ": the host ", host.name, " is listed twice");
    hosts.push_back(host);
  }
  check(!hosts.empty(), place, ": lists no host; give lines like `node1 slots=8`");
  return hosts;
}

std::vector<HostSlots> assign_ranks(std::vector<HostSlots> hosts, int num_ranks) {
  int total = 0;
  for (const HostSlots& host : hosts) {
    total += host.slots;
  }
  check(num_ranks <= total, num_ranks, " ranks were asked for, but the hosts have ", total,
        " slots: give fewer, or more slots in the hostfile");
  int left = num_ranks > 0 ? num_ranks : total;
  for (HostSlots& host : hosts) {
    host.slots = std::min(host.slots, left);
    left -= host.slots;
  }
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots == 0; });
  return hosts;
}

bool is_this_machine(const std::string& host) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const std::string own = name;
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == own ||
         host == own.substr(0, own.find('.'));
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return text + "'";
}

}  // namespace bloomery
