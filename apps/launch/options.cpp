#include "apps/launch/options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "apps/bloomery.h"
#include "apps/launch/jobs/jobs.h"
#include "base/error.h"

namespace bloomery {
namespace {

using Pair = std::pair<const char*, const char*>;
constexpr std::array<Pair, 8> kShort = {{{"-n", "--num-ranks"},
                                         {"-np", "--num-ranks"},
                                         {"-H", "--hostfile"},
                                         {"-i", "--include"},
                                         {"-e", "--exclude"},
                                         {"-m", "--module"},
                                         {"-r", "--redirects"},
                                         {"-t", "--tee"}}};

// Options of torchrun that it also reads from PET_NAME.
constexpr std::array<const char*, 12> kByVariable = {
    "nnodes",       "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf",
    "max-restarts", "node-rank",      "master-addr",  "master-port",   "log-dir", "local-addr"};

// Without a field that tells it: these take no value.
constexpr std::array<const char*, 4> kIgnoredSwitches = {"--no-local-rank", "--use-env",
                                                         "--bind-cores-to-rank", "--run-path"};

std::string in_long_form(const std::string& word) {
  const auto found = std::ranges::find(kShort, word, &Pair::first);
  return found == kShort.end() ? word : found->second;
}

std::string variable_of(std::string option) {
  std::ranges::transform(option, option.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return "PET_" + option;
}

// The option that a word names: none where it is a value, or names nothing.
const OptionRow* option_of(const OptionTable& table, const std::string& word) {
  const std::string name = canonical_option(word.substr(0, word.find('=')));
  for (const OptionRow& row : table.rows()) {
    for (const OptionRow::Spelling& spelling : row.flags) {
      if (name == "--" + spelling.text) {
        return &row;
      }
    }
  }
  return nullptr;
}

void describe_ranks(OptionTable& t, LaunchOptions& o) {
  t.section("ranks");
  t.add("num-ranks", o.num_ranks, "Number of ranks on all nodes together; 0: as below.",
        at_least(0))
      .alias("n")
      .alias("np");
  t.add("nproc-per-node", o.ranks_per_node,
        "Ranks of each node: a number, `gpu`, `cpu` or `auto`; none: one for each GPU.");
  t.add("num-gpus", o.num_gpus,
        "GPUs of each node, the first N, with a rank for each; -1: all slots of the hostfile, or "
        "all GPUs of this machine.",
        at_least(-1))
      .alias("num-accelerators");
  t.add("nnodes", o.num_nodes,
        "Number of nodes, the first of the hostfile. MIN:MAX: as many of them as answer.")
      .alias("num-nodes");
  t.add("hostfile", o.hostfile, "File of hosts, lines like `host slots=N`; none: this machine.");
  t.add("include", o.include,
        "Nodes and slots to use: HOST@HOST:0,2 takes all slots of one host and two of another.");
  t.add("exclude", o.exclude, "Nodes and slots to leave out, written as for --include.");
  t.add("node-rank", o.node_rank,
        "Index of this node, where the same command is started at every node.", at_least(-1));
  t.add("master-addr", o.host, "Address of rank 0's machine, as other machines reach it.");
  t.add("master-port", o.port, "Port of rank 0; 0: a free one.", between(0, 65535));
}

void describe_reach(OptionTable& t, LaunchOptions& o) {
  t.section("other machines");
  t.add("launcher", o.program, "Program that starts ranks on other machines.",
        {{"ssh", StartProgram::ssh},
         {"pdsh", StartProgram::pdsh},
         {"openmpi", StartProgram::open_mpi},
         {"mpich", StartProgram::mpich},
         {"slurm", StartProgram::slurm}});
  t.add("launcher-args", o.program_arguments, "Further arguments of that program, as one word.");
  t.add("ssh", o.ssh,
        "Command that reaches a host; the host's name and a command line are appended.");
  t.add("ssh-port", o.ssh_port, "Port of ssh at all hosts; 0: as ssh is configured.",
        between(0, 65535));
  t.add("no-ssh", o.no_ssh,
        "Start the ranks of this node alone (--node-rank); every node of the hostfile gets the "
        "same command.");
  t.add("no-ssh-check", o.no_ssh_check, "Do not try whether hosts answer before the start.");
  t.add("force-multi", o.force_multi,
        "Reach every host of the hostfile by the launcher, this machine too.");
}

void describe_output(OptionTable& t, LaunchOptions& o) {
  t.section("command and output");
  t.add("module", o.module, "The command is a Python module, as for `python -m`.");
  t.add("no-python", o.no_python, "Start the command itself, even if it is a Python script.");
  t.add("output-folder", o.output_folder,
        "Folder for the output of each rank, rank-N.log; rank 0 also writes here.");
  t.add("enable-each-rank-log", o.each_rank_log,
        "Folder for the output of each rank, TIME_rankN.log; nothing is written here.");
  t.add("log-dir", o.log_folder,
        "Folder for --redirects and --tee: RUN/attempt_N/LOCAL_RANK/stdout.log and stderr.log.");
  t.add("redirects", o.redirects,
        "Output that goes to files alone: 1 stdout, 2 stderr, 3 both; `0:3,1:2` by local rank.");
  t.add("tee", o.tee, "Output that goes to files and here, written as for --redirects.");
  t.add("local-ranks-filter", o.shown_ranks,
        "Local ranks whose output is shown, 0,2; none: all. Files get everything.");
  t.add("role", o.role, "Name of the ranks, for other programs: ROLE_NAME.");
  t.add("save-pid", o.save_pid,
        "Write the number of this process to /tmp/N.deepspeed while the ranks run.");
}

void describe_meeting(OptionTable& t, LaunchOptions& o) {
  t.section("rendezvous and restarts");
  t.add("standalone", o.standalone, "One node, which meets nobody.");
  t.add_choice("rdzv-backend", o.rendezvous,
               "How nodes find each other; c10d: they meet at --rdzv-endpoint and need no "
               "--node-rank.",
               {"static", "c10d"});
  t.add(
      "rdzv-endpoint", o.endpoint,
      "HOST:PORT where nodes meet; its host has rank 0. The port is 29400 for c10d if not given.");
  t.add("rdzv-id", o.run_id, "Name of the start; nodes of another one are refused.");
  t.add("rdzv-conf", o.rendezvous_settings,
        "Settings KEY=VALUE,...: join_timeout and last_call_timeout in seconds, is_host.");
  t.add("max-restarts", o.max_restarts,
        "How often ranks are started again after a failure, from the last checkpoint.",
        at_least(0));
  t.add("elastic-training", o.elastic, "Start with as many hosts of the hostfile as answer.");
  t.add("min-elastic-nodes", o.min_nodes, "Fewest nodes of --elastic-training.", at_least(-1));
  t.add("max-elastic-nodes", o.max_nodes, "Most nodes of --elastic-training.", at_least(-1));
  t.add("local-addr", o.local_address, "Address of this node, as other nodes reach it.");
  t.add("monitor-interval", o.monitor_interval, "No effect: the end of a rank is noticed at once.",
        at_least(0));
  t.add_choice("start-method", o.start_method, "No effect: every rank is a new program.",
               {"spawn", "fork", "forkserver"});
}

// Flags of theirs that can change nothing here, or ask for what does not exist.
void describe_others(OptionTable& t) {
  t.section("other flags of deepspeed and torchrun");
  t.ignore("no-local-rank", "ranks learn their number from LOCAL_RANK alone");
  t.ignore("use-env", "ranks learn their number from LOCAL_RANK alone");
  t.ignore("bind-cores-to-rank", "every rank takes its part of the cores by itself");
  t.ignore("bind-core-list", "every rank takes its part of the cores by itself");
  t.ignore("event-log-handler", "there are no events to record");
  t.ignore("signals-to-handle", "SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 reach the ranks");
  t.refuse("autotuning", {}, "`bloomery pretrain --dry-run` predicts memory instead of trying it");
  t.refuse("run-path", {}, "only programs and modules can be ranks");
  t.refuse("logs-specs", {"default"}, "logs are written as --log-dir says");
}

void describe_internal(OptionTable& t, LaunchOptions& o) {
  t.section("internal, for a launch that another launch started");
  t.add("placement", o.placement, "Internal: the nodes with their ranks and devices.");
  t.add("orders", o.takes_orders,
        "Internal: read environment variables and signals from standard input.");
  t.add("variables-file", o.variables_file, "Internal: read environment variables from this file.");
  t.add("log-prefix", o.log_prefix, "Internal: first part of the names of log files.");
  t.add("pid-file", o.pid_file, "Internal: file for the number of this process.");
  t.add("attempt", o.attempt, "Internal: how often the ranks were started again.", at_least(0));
  t.add("attend", o.attended, "Internal: descriptor of a node that joined.", at_least(-1));
}

// A word that stands without a value behind it.
bool stands_alone(const OptionTable& table, const std::string& flag) {
  const OptionRow* const row = option_of(table, flag);
  return flag.find('=') != flag.npos || flag.starts_with("--help") || flag == "-h" ||
         is_verbosity(flag) || (row != nullptr && kind(row->field) == FieldKind::boolean) ||
         std::ranges::count(kIgnoredSwitches, canonical_option(flag)) > 0;
}

// Flags in their long form. A value may begin with a dash: --launcher_args "-t 5".
Arguments joined_to_values(const OptionTable& table, const Arguments& words) {
  Arguments flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string flag = in_long_form(words[i]);
    const bool takes_next = !stands_alone(table, flag) && i + 1 < words.size();
    flags.push_back(takes_next ? flag + "=" + words[i + 1] : flag);
    i += takes_next ? 1 : 0;
  }
  return flags;
}

}  // namespace

void describe(OptionTable& table, LaunchOptions& options) {
  describe_ranks(table, options);
  describe_reach(table, options);
  describe_output(table, options);
  describe_meeting(table, options);
  describe_others(table);
  describe_internal(table, options);
}

std::size_t start_of_command(const Arguments& words) {
  if (asks_for_job(words)) {
    return start_of_job_command(words);
  }
  LaunchOptions unused;
  OptionTable table;
  describe(table, unused);
  table.take_config_files();
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with("-")) {
    const std::string flag = in_long_form(words[i]);
    if (flag == "--") {
      return i + 1;
    }
    i += stands_alone(table, flag) ? 1 : 2;
  }
  return std::min(i, words.size());
}

LaunchWords divide(const Arguments& arguments, const Variables& variables) {
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(start_of_command(arguments));
  LaunchWords words{{arguments.begin(), command}, {command, arguments.end()}};
  std::erase(words.flags, "--");
  LaunchOptions unused;
  OptionTable table;
  describe(table, unused);
  table.take_config_files();
  words.flags = joined_to_values(table, words.flags);
  for (std::string& word : words.flags) {
    if (word.starts_with("--launcher=")) {  // in any case, as DeepSpeed takes it
      std::ranges::transform(word, word.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
      });
    }
  }
  std::vector<const OptionRow*> given;
  std::ranges::transform(words.flags, std::back_inserter(given),
                         [&](const std::string& word) { return option_of(table, word); });
  const auto gives = [&](const std::string& name) {
    return std::ranges::find(given, option_of(table, "--" + name)) != given.end();
  };
  // A rank has the variables of its own launch.
  if (gives("num-ranks") || gives("hostfile") || gives("placement") ||
      variables.contains("LOCAL_RANK")) {
    return words;
  }
  for (const std::string name : kByVariable) {
    const auto value = variables.find(variable_of(name));
    if (value != variables.end() && !value->second.empty() && !gives(name)) {
      words.flags.push_back(concat("--", name, "=", value->second));
    }
  }
  return words;
}

}  // namespace bloomery
