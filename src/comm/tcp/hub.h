// The middle of the control plane, a thread in the process of the first rank. All ranks are
// connected to it: it gathers their messages, and tells all of a failure or of a rank that is gone.
//
// Ranks tell it where they stand. Every second it says to all that it lives, and to the second rank
// what it knows of all, so that somebody knows if the first is lost. After a failure for which a
// rank is silent it gathers the last words of the others for the first rank.
#pragma once

#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/tcp/frame.h"
#include "comm/tcp/socket.h"
#include "comm/world.h"

namespace bloomery {

Frame failure_frame(const World::Failure& failure);
World::Failure read_failure(FieldReader fields);

class Hub {
 public:
  // `own` is the connection of the first rank itself. Ranks that have not come after so many
  // seconds are a failure of all.
  Hub(Socket listener, Socket own, int size, double start_seconds);
  ~Hub();  // when all ranks have left; soon after a failure
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

 private:
  struct Connection {
    Socket socket;
    int rank = -1;        // unknown until it says so
    std::string address;  // of its machine; empty: this one
    std::string in, out;  // bytes on their way
    bool closed = false;
  };
  struct Letters {
    std::map<int, std::string> texts;  // by world rank
    double seconds = 0;                // how long the first one waits
    int first = 0;
    Deadline deadline;
  };
  using Key = std::tuple<std::string, std::string, std::int64_t>;  // group, topic, number

  void run();
  void serve_once();
  bool done() const;
  void take_new();
  void read(Connection& connection);
  void write(Connection& connection);
  void close(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void handle_hello(Connection& connection, FieldReader fields);
  void refuse(Connection& connection, const std::string& why);
  void handle_letter(int rank, FieldReader fields);
  void answer(const Key& key, const Letters& letters);
  void look_at_deadlines();
  void refuse_absent();
  std::vector<int> missing(const Key& key, const Letters& letters) const;
  void fail(const World::Failure& failure, int except = -1);
  void handle_status(int rank, FieldReader fields);
  void tell_statuses();
  Frame statuses() const;
  void send(int rank, const Frame& frame);

  const Socket listener_;
  const int size_;
  const Deadline start_deadline_;
  std::vector<Connection> connections_;
  std::map<int, std::size_t> by_rank_;  // places in connections_
  std::set<int> left_;                  // in peace
  std::map<std::string, std::vector<int>> groups_;
  std::map<Key, Letters> letters_;
  struct Status {
    Deadline taken;
    bool answered = false;  // after the failure
    std::string bytes;
  };
  std::map<int, Status> statuses_;  // by rank
  Deadline next_beat_{};
  bool gathers_last_words_ = false;
  bool all_came_ = false, failed_ = false;
  Deadline last_word_;  // after a failure: when whoever has not left is left alone
  std::thread thread_;
};

}  // namespace bloomery
