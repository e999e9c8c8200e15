#include "apps/launch/plan.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <tuple>

#include "apps/launch/plan_checks.h"
#include "base/error.h"

namespace bloomery {
namespace {

constexpr int kTorchPort = 29500, kMeetingPort = 29400;  // torchrun's defaults

class Planner {
 public:
  Planner(const LaunchOptions& options, const LaunchFacts& facts)
      : o_(options), facts_(facts), range_(node_range(options)) {
    plan_.host = o_.host;
    plan_.port = o_.port;
  }

  StartPlan plan() {
    check_flags(o_);
    if (!o_.placement.empty()) {
      plan_.nodes = placement_from(o_.placement);
      plan_.here = std::max(0, o_.node_rank);
    } else if (!o_.hostfile.empty()) {
      plan_hosts();
    } else if (o_.program == StartProgram::slurm) {
      plan_allocation();
    } else if (range_.max > 1) {
      plan_equal_nodes(range_);
    } else if (pods() > 1) {
      plan_equal_nodes({pods(), pods()});
    } else {
      check(o_.node_rank <= 0, "--node_rank ", o_.node_rank,
            " is not among one node: give --nnodes, or leave it out");
      plan_.nodes = {this_node()};
    }
    return plan_;
  }

 private:
  std::string variable(const char* name) const {
    const auto found = facts_.variables.find(name);
    return found == facts_.variables.end() ? std::string() : found->second;
  }
  // The first of these that is a number; 0: none.
  int any_number(std::initializer_list<const char*> names) const {
    for (const char* const name : names) {
      if (const auto value = count_from(variable(name))) {
        return *value;
      }
    }
    return 0;
  }

  // Pods of a PyTorchJob or JobSet have WORLD_SIZE and RANK or an index; a rank has LOCAL_RANK too.
  int pods() const {
    const bool pod = variable("LOCAL_RANK").empty() && o_.num_ranks == 0 && !range_.given() &&
                     !o_.standalone &&
                     (!variable("RANK").empty() || !variable("JOB_COMPLETION_INDEX").empty());
    return pod ? any_number({"WORLD_SIZE"}) : 1;
  }

  void plan_hosts() {
    std::vector<NodeSlots> nodes = all_slots(parse_hostfile(facts_.hostfile, o_.hostfile));
    nodes = !o_.include.empty()   ? included(nodes, o_.include)
            : !o_.exclude.empty() ? excluded(nodes, o_.exclude)
                                  : nodes;
    const int hosts = static_cast<int>(nodes.size());
    check(range_.min <= hosts && (range_.max <= hosts || range_.min < range_.max), "--nnodes ",
          range_.min, ", but ", o_.hostfile, " has ", hosts,
          " hosts: give fewer, or more hosts in the hostfile");
    plan_.elastic = range_.min < range_.max;
    for (const NodeSlots& node : nodes) {
      const int index = static_cast<int>(plan_.nodes.size());
      if (plan_.elastic || !range_.given() || index < range_.max) {
        plan_.nodes.push_back(on_slots(node));
      }
    }
    plan_.min_nodes = plan_.elastic ? range_.min : static_cast<int>(plan_.nodes.size());
    plan_.max_nodes = plan_.elastic ? std::min(range_.max, hosts) : plan_.min_nodes;
    keep_first_ranks();
    if (o_.no_ssh) {
      check(o_.node_rank < static_cast<int>(plan_.nodes.size()), "--node_rank ", o_.node_rank,
            " is not among the ", plan_.nodes.size(), " nodes, which count from 0");
      plan_.here = o_.node_rank;
      plan_.host = plan_.host.empty() ? plan_.nodes.front().name : plan_.host;
      plan_.port = plan_.port > 0 ? plan_.port : kTorchPort;
    }
  }

  NodeRanks on_slots(const NodeSlots& node) const {
    const int slots = static_cast<int>(node.devices.size());
    const bool all = o_.ranks_per_node == "gpu" || o_.ranks_per_node == "auto";
    const bool counted = !o_.ranks_per_node.empty() && !all;
    const int ranks = o_.num_gpus > 0 ? o_.num_gpus : counted ? given_ranks() : slots;
    check(ranks <= slots, o_.num_gpus > 0 ? "--num_gpus " : "--nproc_per_node ", ranks, ", but ",
          node.name, " has ", slots, " slots: give fewer, or more slots in the hostfile");
    return {node.name, ranks, {node.devices.begin(), node.devices.begin() + ranks}};
  }

  // Of -n: the hosts are filled one after another.
  void keep_first_ranks() {
    const int total = plan_.world_size();
    check(o_.num_ranks <= total, o_.num_ranks, " ranks were asked for, but the hosts have ", total,
          " slots: give fewer, or more slots in the hostfile");
    int left = o_.num_ranks > 0 ? o_.num_ranks : total;
    for (NodeRanks& node : plan_.nodes) {
      node.ranks = std::min(node.ranks, left);
      node.devices.resize(static_cast<std::size_t>(node.ranks));
      left -= node.ranks;
    }
    std::erase_if(plan_.nodes, [](const NodeRanks& node) { return node.ranks == 0; });
  }

  // srun starts the ranks in the job that this launch runs in.
  void plan_allocation() {
    const int nodes = range_.given() ? range_.max : any_number({"SLURM_JOB_NUM_NODES"});
    const int ranks = o_.num_gpus > 0              ? o_.num_gpus
                      : !o_.ranks_per_node.empty() ? given_ranks()
                                                   : any_number({"SLURM_GPUS_ON_NODE"});
    check(nodes > 0 && (ranks > 0 || o_.num_ranks > 0),
          "--launcher slurm needs to know nodes and ranks: run it in a job (sbatch, salloc), or "
          "give --nnodes and --num_gpus");
    check(ranks > 0 || o_.num_ranks % nodes == 0, "-n ", o_.num_ranks, " cannot be divided among ",
          nodes, " nodes");
    plan_.nodes.assign(static_cast<std::size_t>(nodes),
                       {"", o_.num_ranks > 0 ? o_.num_ranks / nodes : ranks, {}});
  }

  // The same command is started at every node, by a person, a scheduler or as pods.
  void plan_equal_nodes(const NodeRange& nodes) {
    const NodeRanks here = this_node();
    plan_.min_nodes = nodes.min;
    plan_.max_nodes = nodes.max;
    if (o_.rendezvous == "c10d") {
      plan_.meets = true;
      plan_.nodes = {here};
      std::tie(plan_.host, plan_.port) = endpoint_of(o_.endpoint, kMeetingPort);
      check(plan_.port > 0, "--rdzv_endpoint ", o_.endpoint,
            ": several nodes need a port that all of them know, not 0");
      return;
    }
    plan_.nodes.assign(static_cast<std::size_t>(nodes.max), here);
    const bool indexed = !range_.given();
    plan_.here = o_.node_rank >= 0 ? o_.node_rank
                 : indexed         ? any_number({"RANK", "JOB_COMPLETION_INDEX"})
                                   : 0;
    if (!o_.endpoint.empty()) {
      std::tie(plan_.host, plan_.port) = endpoint_of(o_.endpoint, kTorchPort);
    }
    plan_.host = plan_.host.empty() ? variable("MASTER_ADDR") : plan_.host;
    plan_.port = plan_.port > 0 ? plan_.port : any_number({"MASTER_PORT"});
    plan_.port = plan_.port > 0 ? plan_.port : kTorchPort;
    check(plan_.here < nodes.max, "node ", plan_.here, " is not among the ", nodes.max,
          " nodes, which count from 0: give another --node_rank");
    check(!plan_.host.empty(), nodes.max,
          " nodes, but nothing says where they are: give --hostfile FILE here; or, at every node, "
          "--node_rank K --master_addr HOST, or --rdzv_backend c10d --rdzv_endpoint HOST:PORT");
  }

  int given_ranks() const {
    if (o_.ranks_per_node == "cpu" || (o_.ranks_per_node == "auto" && facts_.gpus == 0)) {
      return facts_.cpus;
    }
    if (o_.ranks_per_node == "gpu" || o_.ranks_per_node == "auto") {
      check(facts_.gpus > 0,
            "--nproc_per_node gpu, but this machine shows no GPU to this program: give a number");
      return facts_.gpus;
    }
    const std::optional<int> ranks = count_from(o_.ranks_per_node);
    check(ranks.value_or(0) > 0, "--nproc_per_node ", o_.ranks_per_node,
          " is neither a number above 0 nor gpu, cpu or auto");
    return *ranks;
  }

  NodeRanks this_node() {
    const auto visible = facts_.variables.find("CUDA_VISIBLE_DEVICES");
    const bool is_set = visible != facts_.variables.end();
    if (!o_.include.empty() || !o_.exclude.empty() || o_.num_gpus > 0) {
      if (is_set && !visible->second.empty()) {
        plan_.notes.push_back(concat("CUDA_VISIBLE_DEVICES=", visible->second,
                                     " counts for nothing beside --include, --exclude and "
                                     "--num_gpus, which choose GPUs themselves"));
      }
      return chosen_slots();
    }
    if (o_.num_ranks > 0 || !o_.ranks_per_node.empty()) {
      return {"localhost", o_.num_ranks > 0 ? o_.num_ranks : given_ranks(), {}};
    }
    if (facts_.gpus > 0 && is_set) {
      NodeRanks node{"localhost", 1, {}};
      std::istringstream devices(visible->second);
      for (std::string device; std::getline(devices, device, ',');) {
        node.devices.push_back(device);
      }
      node.ranks = std::max(1, static_cast<int>(node.devices.size()));
      return node;
    }
    const NodeSlots all = all_slots({{"localhost", facts_.gpus}}).front();
    return {"localhost", std::max(1, facts_.gpus), all.devices};
  }

  // Where no GPU is seen the slots are taken as they are named.
  NodeRanks chosen_slots() const {
    const bool unknown = facts_.gpus == 0;
    check(o_.num_gpus <= facts_.gpus || unknown, "--num_gpus ", o_.num_gpus,
          ", but this machine has ", facts_.gpus, ": give fewer, or let ranks share GPUs with -n ",
          o_.num_gpus);
    check(o_.exclude.empty() || !unknown, "--exclude ", o_.exclude,
          ": this machine shows no GPU to this program; give -n");
    std::vector<NodeSlots> nodes =
        all_slots({{"localhost", o_.num_gpus > 0 ? o_.num_gpus : facts_.gpus}});
    nodes = !o_.exclude.empty()  ? excluded(nodes, o_.exclude)
            : o_.include.empty() ? nodes
            : unknown            ? named_slots(o_.include)
                                 : included(nodes, o_.include);
    const std::vector<std::string>& devices = nodes.front().devices;
    const int slots = static_cast<int>(devices.size());
    check(o_.num_ranks <= slots, "-n ", o_.num_ranks, ", but ", slots, " slots were chosen");
    const int ranks = o_.num_ranks > 0 ? o_.num_ranks : slots;
    return {"localhost", ranks, {devices.begin(), devices.begin() + ranks}};
  }

  const LaunchOptions& o_;
  const LaunchFacts& facts_;
  const NodeRange range_;
  StartPlan plan_;
};

}  // namespace

StartPlan plan_start(const LaunchOptions& options, const LaunchFacts& facts) {
  return Planner(options, facts).plan();
}

}  // namespace bloomery
