#include "apps/launch/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"

namespace bloomery {
namespace {

// slots=N, or Open MPI's max_slots=N.
int number_of_slots(const std::string& word, const std::string& place) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const char* const last = word.data() + word.size();
  int slots = 0;
  if (equals < word.size() && (name == "slots" || name == "max_slots")) {
    const auto [end, problem] = std::from_chars(word.data() + equals + 1, last, slots);
    slots = problem == std::errc() && end == last ? slots : 0;
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
    check(host.name.find('=') == std::string::npos, where, ": '", line,
          "' names no host; write `node1 slots=8`");
    for (std::string word; words >> word;) {
      const int slots = number_of_slots(word, where);
      host.slots = word.starts_with("slots") ? slots : host.slots;
    }
    check(names.insert(host.name).second, where, ": the host ", host.name, " is listed twice");
    hosts.push_back(host);
  }
  check(!hosts.empty(), place, ": lists no host; give lines like `node1 slots=8`");
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
