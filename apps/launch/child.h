// Processes that a launch starts: one for each rank here, and one for each other machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/socket.h"

namespace bloomery {

struct OutputTarget {
  std::string file;  // empty: none
  bool to_screen = true;
};

struct ChildCommand {
  std::string name;                              // "rank 3", "node2"
  std::vector<std::string> words;                // the program and its arguments
  std::map<std::string, std::string> variables;  // added to the environment
  std::string prefix;                            // before every line of output on the screen
  OutputTarget output;
  std::optional<OutputTarget> errors;  // of standard error; none: together with the output
  bool own_terminal = false;           // writes to our output itself: neither prefix nor file
  bool takes_orders = false;           // another launch, which reads signals from its input
  std::string first_order;             // which that one reads before
  int keep_open = -1;                  // a descriptor that it inherits
};

class Child {
 public:
  explicit Child(const ChildCommand& command);
  Child(Child&&) = default;

  const std::string& name() const { return name_; }
  pid_t process() const { return process_; }
  // Where its output is read from, until it has ended.
  std::vector<int> outputs() const;
  void pass_on_output();  // what is there now
  void finish_output();   // until it ends

  void signal(int number) const;
  // SIGTERM because others failed: orders tell it by a minus sign, since a start may follow.
  void end_for_others() const;
  bool running() const { return running_; }
  void set_ended() { running_ = false; }

 private:
  struct Stream {
    Socket pipe, file;
    bool to_screen;
    int screen;
    std::string partial;  // of a line
  };
  void add_stream(Socket pipe, const OutputTarget& target, int screen);
  void pass_on(Stream& stream) const;
  void write_line(const Stream& stream, const std::string& line) const;

  std::string name_, prefix_;
  bool takes_orders_, running_ = true;
  pid_t process_ = -1;
  Socket orders_;
  std::vector<Stream> streams_;
};

}  // namespace bloomery
