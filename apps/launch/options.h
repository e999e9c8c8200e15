// The flags of a launch: ours, DeepSpeed's and torchrun's, each with the meaning that it has there.
#pragma once

#include <string>
#include <vector>

#include "apps/common/command.h"
#include "comm/start/start.h"
#include "config/option_table.h"

namespace bloomery {

enum class StartProgram { ssh, pdsh, open_mpi, mpich, slurm };

struct LaunchOptions {
  // Which ranks, where.
  int num_ranks = 0;           // on all nodes together; 0: nobody said
  std::string ranks_per_node;  // torchrun's: a number, gpu, cpu, auto
  int num_gpus = -1;           // DeepSpeed's: of each node
  std::string num_nodes;       // N, or MIN:MAX
  std::string hostfile, include, exclude;
  int node_rank = -1;
  std::string host;  // of rank 0
  int port = 0;

  // How other machines are reached.
  StartProgram program = StartProgram::ssh;
  std::string program_arguments, ssh = "ssh -o BatchMode=yes";
  int ssh_port = 0;
  bool no_ssh = false, no_ssh_check = false, force_multi = false;

  // What runs, and where its output goes.
  bool module = false, no_python = false, save_pid = false;
  std::string output_folder, each_rank_log, log_folder, redirects, tee, role = "default";
  std::vector<int> shown_ranks;  // local ones

  // Nodes that meet, and starts after a failure.
  bool standalone = false, elastic = false;
  int min_nodes = -1, max_nodes = -1;
  std::string rendezvous = "static", endpoint, run_id, rendezvous_settings, local_address;
  int max_restarts = 0;
  double monitor_interval = 0;
  std::string start_method = "spawn";

  // Of a launch that another one started on its machine.
  std::string placement, variables_file, log_prefix, pid_file;
  bool takes_orders = false;
  int attended = -1;
  int attempt = 0;  // how often the ranks were started again
};

void describe(OptionTable& table, LaunchOptions& options);

// Where in the words behind `launch` the command of its ranks begins: after its flags, or after
// "--".
std::size_t start_of_command(const Arguments& words);

struct LaunchWords {
  Arguments flags, command;
};

// Flags in their long form. Those of torchrun that nobody gave come from the variables PET_NNODES,
// PET_RDZV_ENDPOINT and so on, as torchrun reads them.
LaunchWords divide(const Arguments& arguments, const Variables& variables);

}  // namespace bloomery
