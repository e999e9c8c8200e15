// Processes that a launch starts: one for each rank here, and one for each other machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/tcp/socket.h"

namespace bloomery {

struct ChildCommand {
  std::string name;                              // "rank 3", "node2"
  std::vector<std::string> words;                // the program and its arguments
  std::map<std::string, std::string> variables;  // added to the environment
  std::string prefix;                            // before every line of output
  std::string file;                              // where the output goes; empty: only to ours
  bool to_screen = true;
  bool own_terminal = false;  // writes to our output itself: neither prefix nor file
  bool takes_orders = false;  // another launch, which reads signals from its input
  std::string first_order;    // which that one reads before
  int keep_open = -1;         // a descriptor that it inherits
};

class Child {
 public:
  explicit Child(const ChildCommand& command);
  Child(Child&&) = default;

  const std::string& name() const { return name_; }
  pid_t process() const { return process_; }
  // Where its output is read from; -1: from nowhere, or it has ended.
  int output() const { return output_ ? output_.descriptor() : -1; }
  void pass_on_output();  // what is there now
  void finish_output();   // until it ends

  void signal(int number) const;
  bool running() const { return running_; }
  void set_ended() { running_ = false; }

 private:
  void write_line(std::string line);

  std::string name_, prefix_, partial_;
  bool to_screen_, takes_orders_, running_ = true;
  pid_t process_ = -1;
  Socket output_, orders_, file_;
};

}  // namespace bloomery
