#include "apps/launch/remote.h"

#include <sys/wait.h>

#include <filesystem>
#include <optional>

#include "apps/launch/environment.h"
#include "apps/launch/local_ranks.h"
#include "base/error.h"

namespace bloomery {
namespace {

void append(Arguments& words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::string absolute(const std::string& folder) {
  return quoted(std::filesystem::absolute(folder).string());
}

// `bloomery launch` as another machine runs it, without the command of the ranks.
std::string launch_line(const RemoteStart& start, const std::string& node) {
  const LaunchOptions& o = start.options;
  std::string line =
      concat(quoted(own_program()), " launch --orders --placement ",
             quoted(placement_text(start.plan.nodes)), " --node-rank ", node, " --master-addr ",
             quoted(start.host), " --master-port ", start.port, " --role ", quoted(o.role));
  if (!o.output_folder.empty()) {
    line += " --output-folder " + absolute(o.output_folder);
  }
  if (!o.each_rank_log.empty() && o.each_rank_log != "None") {
    line += concat(" --enable-each-rank-log ", absolute(o.each_rank_log), " --log-prefix ",
                   quoted(start.log_prefix));
  }
  for (const auto& [flag, value] : {std::pair(" --redirects ", o.redirects), {" --tee ", o.tee}}) {
    line += value.empty() ? "" : flag + quoted(value);
  }
  std::string shown;
  for (const int rank : o.shown_ranks) {
    shown += concat(shown.empty() ? "" : ",", rank);
  }
  line += shown.empty() ? "" : " --local-ranks-filter " + shown;
  line += o.log_folder.empty() ? "" : " --log-dir " + absolute(o.log_folder);
  line += o.run_id.empty() ? "" : " --rdzv-id " + quoted(o.run_id);
  line += start.attempt > 0 ? concat(" --attempt ", start.attempt) : "";
  line += o.module ? " --module" : "";
  line += o.no_python ? " --no-python" : "";
  line += o.pid_file.empty() ? "" : " --pid-file " + quoted(o.pid_file);
  return line;
}

std::string in_this_folder(const std::string& line) {
  return concat("cd ", quoted(std::filesystem::current_path().string()), " && ", line);
}

std::string words_of(const Arguments& command) {
  std::string text = " --";
  for (const std::string& word : command) {
    text += " " + quoted(word);
  }
  return text;
}

Arguments ssh_words(const LaunchOptions& options) {
  Arguments words = shell_words(options.ssh);
  if (options.ssh_port > 0) {
    append(words, {"-p", std::to_string(options.ssh_port)});
  }
  append(words, shell_words(options.program == StartProgram::ssh ? options.program_arguments : ""));
  return words;
}

std::string with_doubled_percent(const std::string& text) {
  std::string doubled;
  for (const char c : text) {
    doubled += c == '%' ? "%%" : std::string(1, c);
  }
  return doubled;
}

}  // namespace

ChildCommand by_ssh(const RemoteStart& start, int node) {
  const std::string& name = start.plan.nodes[static_cast<std::size_t>(node)].name;
  ChildCommand child{.name = name, .words = ssh_words(start.options)};
  child.words.push_back(name);
  child.words.push_back(
      in_this_folder("exec " + launch_line(start, std::to_string(node)) + words_of(start.command)));
  child.takes_orders = true;
  child.first_order = carried_variables(start.further);
  return child;
}

// Without exec, since pdsh -S has the shell write the exit code at the end.
ChildCommand by_pdsh(const RemoteStart& start, const std::string& variables_file) {
  const LaunchOptions& o = start.options;
  ChildCommand child{.name = "pdsh", .words = {"pdsh", "-S", "-f", "1024", "-w"}};
  std::string hosts;
  for (const NodeRanks& node : start.plan.nodes) {
    hosts += (hosts.empty() ? "" : ",") + node.name;
  }
  child.words.push_back(hosts);
  append(child.words, shell_words(o.program_arguments));
  const std::string line =
      concat(launch_line(start, "NODE"), " --variables-file ", absolute(variables_file));
  std::string all = with_doubled_percent(in_this_folder(line + words_of(start.command)));
  const std::string flag = "--node-rank ";
  all.replace(all.find(flag + "NODE") + flag.size(), 4, "%n");  // pdsh writes the node's index
  child.words.push_back(all);
  child.variables["PDSH_RCMD_TYPE"] = "ssh";
  if (o.ssh_port > 0) {
    const Variables variables = environment_variables();
    const auto before = variables.find("PDSH_SSH_ARGS_APPEND");
    child.variables["PDSH_SSH_ARGS_APPEND"] =
        concat(before == variables.end() ? "" : before->second + " ", "-p ", o.ssh_port);
  }
  child.own_terminal = true;
  return child;
}

std::vector<bool> answering(const LaunchOptions& options, const std::vector<NodeRanks>& nodes) {
  constexpr const char* kSeconds = "15";
  std::vector<std::optional<Child>> tries;  // all at once
  for (const NodeRanks& node : nodes) {
    tries.emplace_back();
    if (options.force_multi || !is_this_machine(node.name)) {
      Arguments words = {"timeout", kSeconds};
      append(words, ssh_words(options));
      append(words, {node.name, "true"});
      tries.back().emplace(ChildCommand{.name = node.name, .words = words, .output = {"", false}});
    }
  }
  std::vector<bool> answers;
  for (const std::optional<Child>& each : tries) {
    int status = 0;
    answers.push_back(!each || (waitpid(each->process(), &status, 0) > 0 && status == 0));
  }
  return answers;
}

std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
      begun = true;
    } else if (c == quote && quote != '\0') {
      quote = '\0';
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      begun = true;
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) {
        words.push_back(std::exchange(word, {}));
      }
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  check(quote == '\0', "'", text, "' has an open quotation mark");
  if (begun) {
    words.push_back(word);
  }
  return words;
}

}  // namespace bloomery
