// Nodes that find each other at an endpoint, as torchrun's c10d backend has them do. The launch at
// the endpoint's machine listens there, hands out the indices of nodes in the order of arrival (its
// own is 0), and then passes signals on to the others and learns how they ended.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/launch/child.h"
#include "apps/launch/local_ranks.h"
#include "apps/launch/watch.h"
#include "comm/tcp/pending_connections.h"

namespace bloomery {

struct MeetingOptions {
  std::string host;
  int port = 0;
  int ranks = 1;  // of this node
  int min_nodes = 1, max_nodes = 1;
  std::string id;  // of the start; nodes of another one are refused
  std::string local_address;
  double join_seconds = 600;      // until enough nodes have come
  double last_call_seconds = 30;  // for more, when enough have
  int is_host = -1;  // 1: this launch listens, 0: it does not; -1: as the address tells
};

// join_timeout=900,last_call_timeout=10,is_host=1; others of torchrun's settings say nothing here.
void read_settings(const std::string& text, MeetingOptions& options);

class Meeting {
 public:
  explicit Meeting(MeetingOptions options);
  ~Meeting();

  bool listens() const { return listener_ != nullptr; }

  // Waits for the others. An Error says how many came, or why this node was refused. `start` gets
  // everything but its devices and the listener.
  void gather(NodeStart& start);

  // Of the launch that listens: a process for each other node, which stands for it in watch().
  std::vector<ChildCommand> attendants() const;
  void forget_guests();  // their processes have the connections now
  // Of the others: numbers of signals come from here.
  int orders() const { return to_host_.descriptor(); }
  void tell_end(const WatchEnd& end);

 private:
  struct Guest {
    Socket socket;
    int ranks = 1;
    std::string address;
  };
  void accept_guests();
  void drop_those_who_left();
  void seat_guests(NodeStart& start);
  void join_host(NodeStart& start);

  const MeetingOptions options_;
  const Hello hello_;
  std::unique_ptr<PendingConnections> listener_;
  std::vector<Guest> guests_;
  Socket to_host_;
};

inline constexpr const char* kAsked = " asked";  // behind the exit code of a node

// Stands for another node: passes numbers of signals from standard input to it, and ends with the
// exit code that it tells, or with kStoppedEarly if it was asked to end.
int attend_node(int descriptor);

}  // namespace bloomery
