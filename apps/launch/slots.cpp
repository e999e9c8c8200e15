#include "apps/launch/slots.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"

namespace bloomery {
namespace {

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    all.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

int slot_number(const std::string& word, const std::string& place) {
  int slot = -1;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), slot);
  check(problem == std::errc() && end == word.data() + word.size() && slot >= 0, place, ": '", word,
        "' is not the number of a slot; write HOST:0,2 or HOST@HOST");
  return slot;
}

// By host the numbers that were named for it; none: the host alone was named.
using Filter = std::map<std::string, std::set<int>>;

Filter parse_filter(const std::string& text, const std::string& place) {
  Filter filter;
  for (const std::string& word : parts(text, '@')) {
    const std::vector<std::string> fields = parts(word, ':');
    check(!fields[0].empty() && fields.size() <= 2, place, ": '", word,
          "' is not HOST or HOST:SLOT,SLOT");
    std::set<int>& slots = filter[fields[0]];
    if (fields.size() == 2) {
      for (const std::string& slot : parts(fields[1], ',')) {
        slots.insert(slot_number(slot, place));
      }
    }
  }
  return filter;
}

void check_names(const Filter& filter, const std::vector<NodeSlots>& nodes,
                 const std::string& place) {
  std::vector<std::string> names;
  std::ranges::transform(nodes, std::back_inserter(names), &NodeSlots::name);
  for (const auto& [name, slots] : filter) {
    const auto node = std::ranges::find(nodes, name, &NodeSlots::name);
    check(node != nodes.end(), place, ": there is no host ", name, "; the hosts are ",
          joined(names));
    for (const int slot : slots) {
      check(std::ranges::count(node->devices, std::to_string(slot)) > 0, place, ": ", name,
            " has no slot ", slot, "; its slots are ", joined(node->devices));
    }
  }
}

// A host stays with the slots for which `stays`(slots that the filter names, slot).
template <class Stays>
std::vector<NodeSlots> filtered(const std::vector<NodeSlots>& nodes, const std::string& text,
                                const std::string& place, const Stays& stays) {
  const Filter filter = parse_filter(text, place);
  check_names(filter, nodes, place);
  std::vector<NodeSlots> left;
  for (const NodeSlots& node : nodes) {
    const auto named = filter.find(node.name);
    NodeSlots kept{node.name, {}};
    for (const std::string& device : node.devices) {
      const bool is_named = named != filter.end() &&
                            (named->second.empty() || named->second.contains(std::stoi(device)));
      if (stays(is_named)) {
        kept.devices.push_back(device);
      }
    }
    if (!kept.devices.empty()) {
      left.push_back(kept);
    }
  }
  check(!left.empty(), place, " ", text, " leaves no slot");
  return left;
}

}  // namespace

std::vector<NodeSlots> all_slots(const std::vector<HostSlots>& hosts) {
  std::vector<NodeSlots> nodes;
  for (const HostSlots& host : hosts) {
    nodes.push_back({host.name, {}});
    for (int slot = 0; slot < host.slots; ++slot) {
      nodes.back().devices.push_back(std::to_string(slot));
    }
  }
  return nodes;
}

std::vector<NodeSlots> included(const std::vector<NodeSlots>& nodes, const std::string& filter) {
  return filtered(nodes, filter, "--include", [](bool named) { return named; });
}

std::vector<NodeSlots> excluded(const std::vector<NodeSlots>& nodes, const std::string& filter) {
  return filtered(nodes, filter, "--exclude", [](bool named) { return !named; });
}

std::vector<NodeSlots> named_slots(const std::string& filter) {
  const Filter named = parse_filter(filter, "--include");
  NodeSlots node{"localhost", {}};
  for (const auto& [name, slots] : named) {
    check(is_this_machine(name), "--include: there is no host ", name,
          " without --hostfile, only localhost");
    check(!slots.empty(), "--include ", filter,
          ": this machine shows no GPUs; name their slots, localhost:0,1");
    for (const int slot : slots) {
      node.devices.push_back(std::to_string(slot));
    }
  }
  return {node};
}

}  // namespace bloomery
