// What a launch starts, decided from its flags, the hostfile and the environment before anything
// runs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/launch/options.h"
#include "apps/launch/slots.h"

namespace bloomery {

struct NodeRanks {
  std::string name;  // empty: whichever the scheduler gives
  int ranks = 1;
  // The GPUs of the node, which CUDA_VISIBLE_DEVICES gets; empty: the variable stays as it is.
  std::vector<std::string> devices;
};

struct StartPlan {
  std::vector<NodeRanks> nodes;
  int here = -1;  // the one node whose ranks this launch starts; -1: it starts all of them
  // Nodes that meet at an endpoint: `nodes` has this one alone.
  bool meets = false;
  bool elastic = false;  // those of the nodes that answer, or come to the endpoint
  int min_nodes = 1, max_nodes = 1;
  std::string host;  // of rank 0; empty: to be found
  int port = 0;      // 0: a free one
  std::vector<std::string> notes;

  int first_rank(int node) const;
  int world_size() const { return first_rank(static_cast<int>(nodes.size())); }
};

// What a plan depends on besides the flags.
struct LaunchFacts {
  Variables variables;
  std::string hostfile;    // its text
  int gpus = 0, cpus = 1;  // of this machine
};

// An Error says which flags contradict each other, or what the hosts do not have.
StartPlan plan_start(const LaunchOptions& options, const LaunchFacts& facts);

// The nodes of a plan for the launches at other machines: "node1/2/0,1 node2/4/".
std::string placement_text(const std::vector<NodeRanks>& nodes);
std::vector<NodeRanks> placement_from(const std::string& text);

// The first of the nodes that answer, as many as the plan takes. An Error when they are too few.
void keep_answering(StartPlan& plan, const std::vector<bool>& answers);

// A number from 0 on; none: the text is something else.
std::optional<int> count_from(const std::string& text);

// HOST or HOST:PORT, with an IPv6 address in brackets.
std::pair<std::string, int> endpoint_of(const std::string& text, int default_port);

}  // namespace bloomery
