#include "apps/launch/plan_checks.h"

#include <charconv>
#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

int number_of_nodes(const std::string& text, const std::string& all) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(problem == std::errc() && end == text.data() + text.size() && number > 0, "--nnodes ", all,
        " is neither a number of nodes nor MIN:MAX");
  return number;
}

void check_counts(const LaunchOptions& o, const NodeRange& nodes) {
  const bool per_node = o.num_gpus > 0 || !o.ranks_per_node.empty();
  const bool filter = !o.include.empty() || !o.exclude.empty();
  check(o.include.empty() || o.exclude.empty(),
        "--include and --exclude exclude each other: name what is used, or what is left out");
  check(!filter || (!nodes.given() && o.num_gpus < 0 && o.ranks_per_node.empty()),
        "--include and --exclude choose the slots already: leave out --num_nodes, --nnodes, "
        "--num_gpus and --nproc_per_node");
  check(o.num_gpus < 0 || o.ranks_per_node.empty(),
        "--num_gpus and --nproc_per_node both count the ranks of a node: give one of them");
  check(o.num_gpus != 0, "--num_gpus 0 leaves no rank: give a number above 0");
  check(o.num_ranks == 0 || !per_node,
        "-n counts the ranks of all nodes, --num_gpus and --nproc_per_node those of each: give one "
        "of them");
  check(o.num_ranks == 0 || !nodes.given() || !o.hostfile.empty() || nodes.max == 1,
        "-n with --nnodes needs --hostfile, which names the nodes; without one give "
        "--nproc_per_node instead of -n");
  check(o.num_ranks == 0 || nodes.min == nodes.max,
        "-n does not go with a range of nodes: give --nproc_per_node instead");
}

void check_nodes(const LaunchOptions& o, const NodeRange& nodes) {
  const bool range = nodes.min != nodes.max;
  const bool by_c10d = o.rendezvous == "c10d" && !o.standalone;
  check(!o.standalone || (o.hostfile.empty() && nodes.max <= 1),
        "--standalone is for one node: leave it out, or --hostfile and --nnodes");
  check(o.hostfile.empty() || !by_c10d,
        "--hostfile names the nodes, so that nobody has to meet at an endpoint: leave out "
        "--rdzv_backend c10d, or --hostfile");
  check(
      !by_c10d || nodes.max <= 1 || !o.endpoint.empty(),
      "--rdzv_backend c10d with several nodes needs --rdzv_endpoint HOST:PORT, the address of one "
      "of them, the same at all");
  check(!range || !o.hostfile.empty() || by_c10d,
        "--nnodes MIN:MAX needs a way to know which nodes are there: --hostfile FILE, or "
        "--rdzv_backend c10d --rdzv_endpoint HOST:PORT");
  check(
      !range || o.hostfile.empty() || (!o.no_ssh && !o.no_ssh_check),
      "a range of nodes takes those that answer by ssh: leave out --no_ssh and --no_ssh_check, or "
      "give one number of nodes");
  check(!range || o.hostfile.empty() || o.program == StartProgram::ssh ||
            o.program == StartProgram::pdsh,
        "a range of nodes needs --launcher ssh or pdsh");
  check(!o.elastic || !o.hostfile.empty(),
        "--elastic_training takes the hosts of --hostfile that answer: give one");
  check(o.hostfile.empty() || o.no_ssh || o.node_rank <= 0 || !o.placement.empty(), "--node_rank ",
        o.node_rank, " with --hostfile starts one node alone: add --no_ssh, or leave it out");
  check(!o.no_ssh || o.hostfile.empty() || o.node_rank >= 0,
        "--no_ssh starts the ranks of one node: give its --node_rank");
}

void check_output(const LaunchOptions& o) {
  const bool by_stream = !o.redirects.empty() || !o.tee.empty();
  const bool each_rank = !o.each_rank_log.empty() && o.each_rank_log != "None";
  const int places = (o.output_folder.empty() ? 0 : 1) + (each_rank ? 1 : 0) + (by_stream ? 1 : 0);
  check(places <= 1,
        "--output-folder, --enable_each_rank_log and --redirects with --tee are three ways to keep "
        "the output: give one of them");
  const bool starts_ranks = o.program != StartProgram::ssh && o.program != StartProgram::pdsh;
  check(!starts_ranks || places == 0,
        "--launcher openmpi, mpich and slurm start the ranks themselves: leave out --output-folder "
        "and its like, and give what that program has for it (mpirun --output-filename, srun "
        "--output) by --launcher_args");
  check(!o.module || !o.no_python, "--module and --no_python contradict each other: give one");
}

}  // namespace

NodeRange node_range(const LaunchOptions& options) {
  NodeRange range;
  if (!options.num_nodes.empty() && options.num_nodes != "-1") {
    const std::size_t colon = options.num_nodes.find(':');
    range.min = number_of_nodes(options.num_nodes.substr(0, colon), options.num_nodes);
    range.max = colon == std::string::npos
                    ? range.min
                    : number_of_nodes(options.num_nodes.substr(colon + 1), options.num_nodes);
  }
  if (options.elastic) {
    const int most = range.max > 0 ? range.max : std::numeric_limits<int>::max();
    range.min = options.min_nodes > 0 ? options.min_nodes : 1;
    range.max = options.max_nodes > 0 ? options.max_nodes : most;
  }
  check(range.min <= range.max, "--nnodes: at least ", range.min, " and at most ", range.max,
        " nodes contradict each other");
  return range;
}

void check_flags(const LaunchOptions& options) {
  const NodeRange nodes = node_range(options);
  check_counts(options, nodes);
  check_nodes(options, nodes);
  check_output(options);
}

}  // namespace bloomery
