// The control plane of a group of ranks: small messages between hosts, beside the communicators
// that move device tensors. Manifests, wishes to stop, timers and facts of the start-up go here;
// nothing of it touches a device stream.
//
// Calls are collective and may be made by any thread of a rank. Each names its topic: calls of one
// topic meet in the order in which each rank makes them, and calls of different topics do not wait
// for each other, so that a thread which saves a checkpoint can speak while another one trains.
//
// Guarantees by transport. self: every call returns at once. threads: a message is there as soon as
// its sender came; a rank that does not come within the deadline, or calls abort(), is a
// RankFailure on all ranks of the start-up that wait or come later, and it names that rank. tcp:
// the same among processes; also a rank whose process or machine ended, within 15 s, or that left
// before a call which waits for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace bloomery {

// A rank failed, and with it all of the same start-up.
class RankFailure : public Error {
 public:
  RankFailure(const std::string& text, int failed_rank, bool is_mistake)
      : Error(text), rank(failed_rank), mistake(is_mistake) {}
  int rank;
  bool mistake;  // the user's: nothing broke
};

class World;

class HostGroup {
 public:
  virtual ~HostGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The messages of all ranks, in rank order. An Error when one does not come within `seconds`; 0:
  // as long as the transport waits.
  virtual std::vector<std::string> gather(const std::string& topic, std::string mine,
                                          double seconds = 0) = 0;
  // The message of rank `root`.
  std::string broadcast(const std::string& topic, std::string message, int root);
  void barrier(const std::string& topic, double seconds = 0) { gather(topic, {}, seconds); }
  bool any(const std::string& topic, bool mine);  // whether some rank says so
  std::vector<std::vector<double>> gather_numbers(const std::string& topic,
                                                  const std::vector<double>& mine);

  // Wakes the ranks that wait for this one, in all groups of the same start-up and in its
  // communicators, with a RankFailure that gives the reason. `mistake`: the user's.
  virtual void abort(const std::string& reason, bool mistake = false) noexcept = 0;
  virtual World* world() { return nullptr; }  // of the start-up; null: nobody else can fail
};

std::unique_ptr<HostGroup> make_self_host_group();

}  // namespace bloomery
