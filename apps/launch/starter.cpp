#include "apps/launch/starter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "apps/bloomery.h"
#include "apps/launch/environment.h"
#include "base/log.h"

namespace bloomery {
namespace {

constexpr double kSaveSeconds = 300;  // a rank may take to finish its checkpoint after a failure

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Variables for other machines in the current folder, which all share, for this user's eyes alone.
class VariablesFile {
 public:
  explicit VariablesFile(const std::string& variables) {
    const Socket file(mkostemp(path_.data(), O_CLOEXEC));  // a descriptor that closes itself
    check(static_cast<bool>(file), "--launcher pdsh hands variables over by a file in the current ",
          "folder, which cannot be written: ", std::strerror(errno), "; or give --launcher ssh");
    const ssize_t written = write(file.descriptor(), variables.data(), variables.size());
    check(written == static_cast<ssize_t>(variables.size()), path_, " cannot be written");
  }
  ~VariablesFile() { unlink(path_.c_str()); }
  VariablesFile(const VariablesFile&) = delete;
  VariablesFile& operator=(const VariablesFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ".bloomery-launch-XXXXXX";
};

std::vector<Child> children_of(const std::vector<ChildCommand>& commands) {
  std::vector<Child> children;
  for (const ChildCommand& command : commands) {
    children.emplace_back(command);
  }
  return children;
}

bool starts_ranks_itself(StartProgram program) {
  return program != StartProgram::ssh && program != StartProgram::pdsh;
}

}  // namespace

Starter::Starter(const LaunchOptions& options, StartPlan plan, Arguments command)
    : options_(options), plan_(std::move(plan)), command_(std::move(command)) {
  const bool all_here =
      std::ranges::all_of(plan_.nodes, [&](const NodeRanks& node) { return is_here(node); });
  if (all_here || plan_.here >= 0) {
    check_command(command_, options_);  // other machines may have programs that are not here
  }
  if (plan_.meets) {
    MeetingOptions meeting{.host = plan_.host,
                           .port = plan_.port,
                           .ranks = plan_.nodes.front().ranks,
                           .min_nodes = plan_.min_nodes,
                           .max_nodes = plan_.max_nodes,
                           .id = options_.run_id,
                           .local_address = options_.local_address};
    read_settings(options_.rendezvous_settings, meeting);
    meeting_ = std::make_unique<Meeting>(meeting);
  }
  // Who starts all ranks gives them a secret; nodes that were started alike have to bring one.
  if (plan_.here < 0 && !(meeting_ && !meeting_->listens())) {
    give_secret();
  }
  if (!all_here && options_.placement.empty()) {
    further_ = environment_of_files();
    for (const auto& [name, value] : further_) {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  logs_.emplace(options_);
}

bool Starter::is_here(const NodeRanks& node) const {
  return !options_.force_multi && is_this_machine(node.name);
}

int Starter::run() {
  for (int attempt = 0;; ++attempt) {
    const WatchEnd end = start_once(attempt);
    const bool mistake = end.code == kBadInput && is_bloomery_command(command_);
    if (end.code == 0 || end.asked || mistake || end.code == kStoppedEarly ||
        attempt == options_.max_restarts) {
      return end.code;
    }
    Log().warning("the ranks ended with exit code ", end.code, "; they are started again (",
                  attempt + 1, " of ", options_.max_restarts, ")");
  }
}

Arguments Starter::command_of(int attempt) const {
  return attempt > 0 ? resuming(command_) : command_;
}

WatchEnd Starter::start_once(int attempt) {
  if (meeting_) {
    return start_at_meeting(attempt);
  }
  if (plan_.here >= 0) {
    return start_node(attempt);
  }
  const bool several = options_.force_multi || plan_.nodes.size() > 1;
  const bool by_program = options_.program != StartProgram::ssh && several;
  const bool in_job = plan_.nodes.front().name.empty();
  return (by_program && !options_.hostfile.empty()) || in_job ? start_by_program(attempt)
                                                              : start_all_nodes(attempt);
}

WatchEnd Starter::start_at_meeting(int attempt) {
  NodeStart start{.ranks = plan_.nodes.front(), .attempt = attempt};
  Socket listener;
  if (meeting_->listens()) {
    start.host = options_.local_address.empty() ? plan_.host : options_.local_address;
    listener = listen_at(start.host, 0);
    start.port = port_of(listener);
    start.listener = listener.descriptor();
  }
  meeting_->gather(start);
  Log().info("this is node ", start.node, " of ", start.num_nodes, ", with ranks ",
             start.first_rank, " to ", start.first_rank + start.ranks.ranks - 1, " of ",
             start.world_size);
  const PassedSignals signals;
  // The number of the start is the host's: a node that was replaced counts from 0.
  std::vector<ChildCommand> commands =
      rank_commands(start, command_of(start.attempt), options_, *logs_);
  const std::vector<ChildCommand> others = meeting_->attendants();
  commands.insert(commands.end(), others.begin(), others.end());
  std::vector<Child> children = children_of(commands);
  listener = Socket();
  meeting_->forget_guests();
  const WatchEnd end = watch(children, signals, {.orders = meeting_->orders()});
  meeting_->tell_end(end);
  return end;
}

WatchEnd Starter::start_node(int attempt) {
  Socket listener;
  NodeStart start{.ranks = plan_.nodes[static_cast<std::size_t>(plan_.here)],
                  .node = plan_.here,
                  .num_nodes = static_cast<int>(plan_.nodes.size()),
                  .first_rank = plan_.first_rank(plan_.here),
                  .world_size = plan_.world_size(),
                  .host = plan_.host,
                  .port = plan_.port,
                  .attempt = options_.attempt + attempt};
  if (plan_.here == 0) {
    listener = listen_at(start.host, start.port);
    start.listener = listener.descriptor();
    start.port = port_of(listener);
  }
  const PassedSignals signals;
  std::vector<Child> children =
      children_of(rank_commands(start, command_of(attempt), options_, *logs_));
  listener = Socket();
  return watch(children, signals, {.orders = options_.takes_orders ? STDIN_FILENO : -1});
}

NodeStart Starter::meeting_place(const StartPlan& plan) const {
  const std::string& first = plan.nodes.front().name;
  NodeStart place{.num_nodes = static_cast<int>(plan.nodes.size()),
                  .world_size = plan.world_size(),
                  .host = plan.host,
                  .port = plan.port};
  if (place.host.empty()) {
    place.host = !is_this_machine(first) ? first : place.num_nodes == 1 ? "127.0.0.1" : host_name();
  }
  if (place.port == 0) {  // of another machine, where nobody can look for a free one
    std::random_device random;
    place.port = 15'000 + static_cast<int>(random() % 15'000);
  }
  return place;
}

WatchEnd Starter::start_all_nodes(int attempt) {
  StartPlan plan = plan_;
  if (plan.elastic) {
    keep_answering(plan, answering(options_, plan.nodes));
    Log().info("starting on ", plan.nodes.size(), " nodes");
  }
  Socket listener;
  NodeStart place = meeting_place(plan);
  if (is_here(plan.nodes.front())) {
    listener = listen_at(place.host, plan.port);
    place.listener = listener.descriptor();
    place.port = port_of(listener);
  }
  const Arguments command = command_of(attempt);
  const RemoteStart remote{options_,        plan,     command, place.host, place.port,
                           logs_->prefix(), further_, attempt};
  const PassedSignals signals;
  std::vector<ChildCommand> commands;
  for (int node = 0; node < place.num_nodes; ++node) {
    const NodeRanks& ranks = plan.nodes[static_cast<std::size_t>(node)];
    if (!is_here(ranks)) {
      commands.push_back(by_ssh(remote, node));
      continue;
    }
    NodeStart start = place;
    start.ranks = ranks;
    start.node = node;
    start.first_rank = plan.first_rank(node);
    start.attempt = attempt;
    const std::vector<ChildCommand> here = rank_commands(start, command, options_, *logs_);
    commands.insert(commands.end(), here.begin(), here.end());
  }
  std::vector<Child> children = children_of(commands);
  listener = Socket();
  // Our ranks end by themselves when another fails, but for one that writes a checkpoint. A lost
  // connection to another machine does not.
  WatchOptions watched;
  const bool all_here =
      std::ranges::all_of(plan.nodes, [&](const NodeRanks& node) { return is_here(node); });
  if (is_bloomery_command(command) && all_here) {
    watched.kill_seconds = kSaveSeconds;
  }
  return watch(children, signals, watched);
}

WatchEnd Starter::start_by_program(int attempt) {
  StartPlan plan = plan_;
  if (plan.elastic) {
    keep_answering(plan, answering(options_, plan.nodes));
  }
  const Arguments command = command_of(attempt);
  RemoteStart start{options_, plan, command, "", 0, logs_->prefix(), further_, attempt};
  const PassedSignals signals;
  std::optional<VariablesFile> variables;
  std::vector<Child> children;
  if (starts_ranks_itself(options_.program)) {
    children.emplace_back(by_scheduler(start));
  } else {
    const NodeStart place = meeting_place(plan);
    start.host = place.host;
    start.port = place.port;
    variables.emplace(carried_variables(further_));
    children.emplace_back(by_pdsh(start, variables->path()));
  }
  return watch(children, signals, {});
}

}  // namespace bloomery
