#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "apps/launch/plan.h"
#include "base/error.h"

namespace bloomery {

std::optional<int> count_from(const std::string& text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = problem == std::errc() && end == text.data() + text.size() && value >= 0;
  return good ? std::optional(value) : std::nullopt;
}

int StartPlan::first_rank(int node) const {
  int rank = 0;
  for (int i = 0; i < node; ++i) {
    rank += nodes[static_cast<std::size_t>(i)].ranks;
  }
  return rank;
}

void keep_answering(StartPlan& plan, const std::vector<bool>& answers) {
  std::vector<NodeRanks> kept;
  std::string silent;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (answers[i]) {
      kept.push_back(plan.nodes[i]);
    } else {
      silent += (silent.empty() ? "" : ", ") + plan.nodes[i].name;
    }
  }
  check(static_cast<int>(kept.size()) >= plan.min_nodes, kept.size(), " of at least ",
        plan.min_nodes, " nodes answer; these do not: ", silent,
        "; does `ssh HOST true` work there without a password?");
  kept.resize(std::min(kept.size(), static_cast<std::size_t>(plan.max_nodes)));
  plan.nodes = kept;
}

std::string placement_text(const std::vector<NodeRanks>& nodes) {
  std::string text;
  for (const NodeRanks& node : nodes) {
    text += concat(text.empty() ? "" : " ", node.name, "/", node.ranks, "/");
    for (std::size_t i = 0; i < node.devices.size(); ++i) {
      text += (i > 0 ? "," : "") + node.devices[i];
    }
  }
  return text;
}

std::vector<NodeRanks> placement_from(const std::string& text) {
  std::vector<NodeRanks> nodes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::istringstream fields(word);
    NodeRanks node;
    std::string ranks;
    std::getline(fields, node.name, '/');
    std::getline(fields, ranks, '/');
    node.ranks = count_from(ranks).value_or(0);
    for (std::string device; std::getline(fields, device, ',');) {
      node.devices.push_back(device);
    }
    check(node.ranks > 0, "--placement: '", word, "' is not HOST/RANKS/DEVICES");
    nodes.push_back(node);
  }
  return nodes;
}

std::pair<std::string, int> endpoint_of(const std::string& text, int default_port) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t from = bracket == std::string::npos ? 0 : bracket;
  const std::size_t colon = std::min(text.find(':', from), text.size());
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const auto port = colon < text.size() ? count_from(text.substr(colon + 1)) : default_port;
  check(!host.empty() && port.has_value() && *port < 65536, "--rdzv_endpoint ", text,
        " is not HOST:PORT");
  return {host, *port};
}

}  // namespace bloomery
