#include "apps/launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/launch/environment.h"
#include "apps/launch/hosts.h"
#include "apps/launch/jobs/jobs.h"
#include "apps/launch/watch.h"
#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

constexpr double kSaveSeconds = 300;  // a rank may take to finish its checkpoint after a failure

constexpr const char* kUsage =
    "usage: bloomery launch -n N [--hostfile FILE] [--output-folder FOLDER] COMMAND...\n\nStarts "
    "COMMAND as N ranks: a bloomery command (pretrain ...) or another program. Rank 0 writes to "
    "this terminal; lines of other ranks start with their rank. When a rank fails, all "
    "end.\n\nexample:\n  bloomery launch -n 2 pretrain --config run/gpt/options.json\n";

struct LaunchOptions {
  int num_ranks = 0;
  std::string hostfile, output_folder, host, ssh = "ssh -o BatchMode=yes";
  int port = 0, ssh_port = 0;
  // Of a launch that another one started on its machine.
  int first_rank = 0, world_size = 0;
  bool takes_orders = false;
};

void describe(OptionTable& t, LaunchOptions& o) {
  t.section("launch");
  t.add("num-ranks", o.num_ranks, "Number of ranks; 0: one per slot of the hostfile.", at_least(0))
      .alias("n")
      .alias("np")
      .alias("num-gpus")
      .alias("nproc-per-node");
  t.add("hostfile", o.hostfile, "File of hosts, lines like `host slots=N`; none: this machine.");
  t.add("output-folder", o.output_folder, "Folder for the output of each rank, rank-N.log.");
  t.add("master-addr", o.host, "Address of rank 0's machine, as other machines reach it.");
  t.add("master-port", o.port, "Port of rank 0; 0: a free one.", between(0, 65535));
  t.add("ssh", o.ssh,
        "Command that reaches a host; the host's name and a command line are appended.");
  t.add("ssh-port", o.ssh_port, "Port of ssh at all hosts; 0: as ssh is configured.",
        between(0, 65535));
  t.add("first-rank", o.first_rank,
        "Internal, for a launch that another launch started: its first rank.", at_least(0));
  t.add("world-size", o.world_size, "Internal: number of ranks on all machines.", at_least(0));
  t.add("orders", o.takes_orders,
        "Internal: read environment variables and signals from standard input.");
}

std::pair<Arguments, Arguments> divide(const Arguments& arguments) {
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(start_of_command(arguments));
  Arguments own(arguments.begin(), command);
  std::erase(own, "--");
  for (std::string& word : own) {
    word = word == "-n" || word == "-np" ? "--num-ranks" : word;
  }
  return {own, {command, arguments.end()}};
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// One of our commands is run by this program.
std::vector<std::string> program_of(const Arguments& command) {
  std::vector<std::string> words = command;
  if (is_bloomery_command(command)) {
    words.insert(words.begin(), own_program());
  }
  return words;
}

struct Place {
  std::string host;
  int port = 0, world_size = 0;
  int listener = -1;
};

ChildCommand local_rank(const LaunchOptions& options, const Place& place, const Arguments& command,
                        int local, int local_size) {
  const int rank = options.first_rank + local;
  ChildCommand child{.name = concat("rank ", rank), .words = program_of(command)};
  const std::pair<const char*, std::string> variables[] = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(place.world_size)},
      {"LOCAL_RANK", std::to_string(local)},
      {"HOST", place.host},
      {"PORT", std::to_string(place.port)}};
  for (const auto& [name, value] : variables) {
    child.variables[concat("BLOOMERY_", name)] = value;
  }
  child.variables["BLOOMERY_LOCAL_SIZE"] = std::to_string(local_size);
  // For programs that are not ours, as torchrun tells it.
  child.variables["RANK"] = std::to_string(rank);
  child.variables["WORLD_SIZE"] = std::to_string(place.world_size);
  child.variables["LOCAL_RANK"] = std::to_string(local);
  child.variables["LOCAL_WORLD_SIZE"] = std::to_string(local_size);
  child.variables["MASTER_ADDR"] = place.host;
  child.variables["MASTER_PORT"] = std::to_string(place.port);
  if (rank == 0 && place.listener >= 0) {
    child.variables["BLOOMERY_LISTENER"] = std::to_string(place.listener);
    child.keep_open = place.listener;
  }
  child.prefix = rank == 0 ? "" : concat("[rank ", rank, "] ");
  if (!options.output_folder.empty()) {
    child.file = concat(options.output_folder, "/rank-", rank, ".log");
    child.to_screen = rank == 0;
  }
  child.own_terminal = rank == 0 && child.file.empty();
  return child;
}

ChildCommand remote_launch(const LaunchOptions& options, const Place& place,
                           const Arguments& command, const HostSlots& host, int first_rank) {
  std::string line = concat("cd ", quoted(std::filesystem::current_path().string()), " && exec ",
                            quoted(own_program()), " launch --orders");
  line += concat(" --num-ranks ", host.slots, " --first-rank ", first_rank, " --world-size ",
                 place.world_size, " --master-addr ", quoted(place.host), " --master-port ",
                 place.port);
  if (!options.output_folder.empty()) {
    line += " --output-folder " + quoted(std::filesystem::absolute(options.output_folder).string());
  }
  line += " --";
  for (const std::string& word : command) {
    line += " " + quoted(word);
  }
  ChildCommand child{.name = host.name, .first_order = carried_variables()};
  std::istringstream ssh(options.ssh);
  for (std::string word; ssh >> word;) {
    child.words.push_back(word);
  }
  if (options.ssh_port > 0) {
    child.words.push_back("-p");
    child.words.push_back(std::to_string(options.ssh_port));
  }
  child.words.push_back(host.name);
  child.words.push_back(line);
  child.takes_orders = true;
  return child;
}

// Where the first rank is reached, and a socket that waits there if that is here.
Place meeting_place(const LaunchOptions& options, const std::vector<HostSlots>& hosts,
                    Socket& listener) {
  Place place{.host = options.host, .port = options.port, .world_size = options.world_size};
  const bool one_machine = hosts.size() == 1;
  const bool first_is_here = is_this_machine(hosts.front().name);
  if (place.host.empty()) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    place.host = !first_is_here ? hosts.front().name : one_machine ? "127.0.0.1" : name;
  }
  if (place.world_size == 0) {
    for (const HostSlots& host : hosts) {
      place.world_size += host.slots;
    }
  }
  if (first_is_here && options.first_rank == 0) {
    listener = listen_at(place.host, place.port);
    place.listener = listener.descriptor();
    place.port = port_of(listener);
  } else if (place.port == 0) {
    std::random_device random;
    place.port = 15'000 + static_cast<int>(random() % 15'000);
  }
  return place;
}

std::vector<HostSlots> hosts_of(const LaunchOptions& options) {
  if (options.hostfile.empty()) {
    check(options.num_ranks > 0, "give the number of ranks: bloomery launch -n N COMMAND");
    return {{"localhost", options.num_ranks}};
  }
  return assign_ranks(parse_hostfile(read_file(options.hostfile), options.hostfile),
                      options.num_ranks);
}

// Other machines may have programs that are not here.
void check_command(const Arguments& command, const std::vector<HostSlots>& hosts) {
  const bool runs_here =
      std::ranges::any_of(hosts, [](const HostSlots& host) { return is_this_machine(host.name); });
  check(!runs_here || is_bloomery_command(command) || is_program(command[0]), "'", command[0],
        "' is neither a bloomery command nor a program", suggested_command(command[0]),
        "\n`bloomery --help` lists the commands");
}

}  // namespace

std::size_t start_of_command(const Arguments& words) {
  if (asks_for_job(words)) {
    return start_of_job_command(words);
  }
  std::size_t i = 0;
  while (i < words.size() && words[i].starts_with("-")) {
    const std::string& flag = words[i];
    if (flag == "--") {
      return i + 1;
    }
    const bool alone = flag.find('=') != flag.npos || flag.starts_with("--help") ||
                       flag == "--orders" || flag == "-h" || is_verbosity(flag);
    i += alone ? 1 : 2;
  }
  return std::min(i, words.size());
}

int launch_command(const Arguments& arguments, std::ostream& out) {
  if (asks_for_job(arguments)) {
    return job_command(arguments, out);
  }
  const auto [own, command] = divide(arguments);
  LaunchOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, own, out, kUsage)) {
    return kFinished;
  }
  check(!command.empty(), "give the command that the ranks run: bloomery launch -n N pretrain ...");
  if (options.takes_orders) {
    take_variables(STDIN_FILENO);
  }
  give_secret();
  const std::vector<HostSlots> hosts = hosts_of(options);
  check_command(command, hosts);
  if (!options.output_folder.empty()) {
    std::filesystem::create_directories(options.output_folder);
  }
  Socket listener;
  const Place place = meeting_place(options, hosts, listener);
  const PassedSignals signals;
  std::vector<Child> children;
  int first_rank = options.first_rank;
  for (const HostSlots& host : hosts) {
    if (is_this_machine(host.name)) {
      LaunchOptions here = options;
      here.first_rank = first_rank;
      for (int local = 0; local < host.slots; ++local) {
        children.emplace_back(local_rank(here, place, command, local, host.slots));
      }
    } else {
      children.emplace_back(remote_launch(options, place, command, host, first_rank));
    }
    first_rank += host.slots;
  }
  listener = Socket();
  // Our ranks end by themselves when another fails, but for one that writes a checkpoint. A lost
  // connection to another machine does not.
  WatchOptions watched{.takes_orders = options.takes_orders};
  if (is_bloomery_command(command) &&
      std::ranges::all_of(hosts, is_this_machine, &HostSlots::name)) {
    watched.kill_seconds = kSaveSeconds;
  }
  return watch(children, signals, watched);
}

}  // namespace bloomery
