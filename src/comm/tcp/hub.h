// The middle of the control plane, a thread in the process of the first rank. All ranks are
// connected to it: it gathers their messages, and tells all of a failure or of a rank that is gone.
//
// Ranks tell it where they stand. Every second it says to all that it lives, and to the second rank
// what it knows of all, so that somebody knows if the first is lost. After a failure for which a
// rank is silent it gathers the last words of the others for the first rank.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/tcp/frame.h"
#include "comm/tcp/pending_connections.h"
#include "comm/world.h"

namespace bloomery {

Frame failure_frame(const World::Failure& failure);
World::Failure read_failure(FieldReader fields);

class Hub {
 public:
  // `own` is the connection of the first rank itself, and `mine` what the hellos of the others must
  // agree with. Ranks that have not come after so many seconds are a failure of all.
  Hub(Socket listener, Socket own, const Hello& mine, double start_seconds);
  ~Hub() { finish(); }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Waits until all ranks have left; soon after a failure. Returns what was wrong if some did not
  // leave in the time that the first rank gave them with its farewell.
  std::optional<World::Failure> finish();

 private:
  struct Connection {
    Socket socket;
    int rank = 0;
    std::string address;   // of its machine; empty: this one
    std::string in, out;   // bytes on their way
    std::size_t sent = 0;  // of `out`
    bool closed = false;
  };
  struct Letters {
    std::map<int, std::string> texts;  // by world rank
    int to = Frame::kToAll;            // who gets them
    double seconds = 0;                // how long the first one waits
    int first = 0;
    Deadline deadline;
  };
  using Key = std::tuple<std::string, std::string, std::int64_t>;  // group, topic, number

  void run();
  void serve_once();
  bool done() const;
  void take(PendingConnections::Arrival& arrival);
  void welcome_if_complete();
  std::string objection(const Hello& hello) const;  // empty: it is one of this start's ranks
  void read(Connection& connection);
  void write(Connection& connection);
  void close(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void handle_letter(int rank, FieldReader fields);
  void answer(const Key& key, const Letters& letters);
  void look_at_deadlines();
  void refuse_absent();
  void end_without_stragglers();
  std::vector<int> missing(const Key& key, const Letters& letters) const;
  void fail(const World::Failure& failure, int except = -1);
  void handle_status(int rank, FieldReader fields);
  void tell_statuses();
  Frame statuses() const;
  void send(int rank, const Frame& frame);

  const Hello mine_;
  const int size_;
  const Deadline start_deadline_;
  PendingConnections pending_;
  std::map<int, Connection> connections_;  // by rank
  std::set<int> left_;                     // in peace
  std::optional<Deadline> leave_deadline_;
  double leave_seconds_ = 0;
  std::optional<World::Failure> stragglers_;
  std::map<std::string, std::vector<int>> groups_;
  std::map<Key, Letters> letters_;
  struct Status {
    Deadline taken;
    bool answered = false;  // after the failure
    std::string bytes;
  };
  std::map<int, Status> statuses_;  // by rank
  Deadline next_beat_{};
  bool gathers_last_words_ = false, told_ = false;
  bool all_came_ = false, failed_ = false;
  World::Failure failure_;
  Deadline last_word_;  // after a failure: when whoever has not left is left alone
  std::thread thread_;
};

}  // namespace bloomery
