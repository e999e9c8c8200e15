// Connections whose other side has not said yet who it is. Each has a few seconds and the bytes of
// one Hello for that. There are not too many at once: more wait in the queue of the listener, as
// all do while the process has no descriptor left.
#pragma once

#include <poll.h>

#include <list>
#include <vector>

#include "comm/tcp/hello.h"
#include "comm/tcp/socket.h"

namespace bloomery {

class PendingConnections {
 public:
  struct Arrival {
    Socket socket;  // does not block
    Hello hello;    // of this protocol; nothing else of it is checked
  };

  explicit PendingConnections(Socket listener, double hello_seconds = 5);

  void add_waits(std::vector<pollfd>& waits) const;  // for poll(), which must return now and then
  std::vector<Arrival> take();                       // who has said it; does not wait
  void close();                                      // nobody else is expected

 private:
  struct Pending {
    Socket socket;
    Deadline deadline;
    Hello hello;
    std::size_t bytes = 0;  // of the hello
  };

  bool takes_more() const;
  void accept_new();
  bool read_hello(Pending& from) const;  // false: the connection is of no use

  Socket listener_;
  const double hello_seconds_;
  std::list<Pending> pending_;
  Deadline paused_until_{};
};

}  // namespace bloomery
