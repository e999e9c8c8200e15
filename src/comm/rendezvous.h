// Where threads that are ranks meet. What several ranks touch is here, under one mutex per
// start-up.
//
// Collective calls are numbered when they are made and meet by number; messages are numbered per
// pair of ranks. So calls may run on several queued streams, in the order of each, and find their
// counterparts without waiting for calls that are none of their business.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "comm/world.h"

namespace bloomery {

class ThreadGroup;

// What one rank brings to a collective call. `name` to `on_cuda` must agree between ranks.
struct Post {
  const char* name = "";
  std::string detail;  // "sum", "from rank 0"
  DType dtype = DType::fp32;
  std::int64_t count = 0;  // elements of a part
  bool on_cuda = false;

  const void* out = nullptr;           // what the others read
  void* in = nullptr;                  // what the others write
  Counts counts;                       // of all_to_all
  int color = 0, key = 0;              // of split
  std::shared_ptr<ThreadGroup> group;  // of split: used if this rank is the first of its color
  std::string problem;                 // what is wrong with this rank's own arguments
  std::shared_ptr<Event> ready, done;  // on CUDA: may be read; has read the others'
};
using Posts = std::vector<Post>;

// A message between two ranks of a group: the sender's buffer until the receiver has copied it.
struct Message {
  enum class Stage : std::uint8_t { none, posted, taken, copied };
  Stage stage = Stage::none;
  ConstView data;
  std::string problem;  // for both sides
  std::shared_ptr<Event> ready, done;
};

class ThreadGroup {
 public:
  ThreadGroup(std::shared_ptr<World> world, std::vector<int> world_ranks)
      : world_(std::move(world)), world_ranks_(std::move(world_ranks)) {}

  int size() const { return static_cast<int>(world_ranks_.size()); }
  int world_rank(int rank) const { return world_ranks_[rank]; }
  const std::shared_ptr<World>& world() const { return world_; }
  void set_members(std::vector<int> world_ranks) { world_ranks_ = std::move(world_ranks); }

  using Events = std::vector<std::shared_ptr<Event>>;
  using Work = std::function<std::shared_ptr<Event>(const Posts&)>;
  // Waits until all ranks have come to call `number`, checks that they agree, does `work` (which
  // must not wait), waits until all have, and returns what the work of each returned. Either all
  // ranks do their work or none, so no rank leaves while another reads its memory.
  Events meet(std::int64_t number, int rank, Post post, const Work& work);

  struct Route {
    int from, to;
    std::int64_t number;  // of this message between these two
    auto operator<=>(const Route&) const = default;
  };
  void post(const Route& route, ConstView data, std::shared_ptr<Event> ready);
  // Waits for the message and does `copy`, which must not wait. Returns a problem or nothing.
  std::string take(const Route& route, ConstView into,
                   const std::function<std::shared_ptr<Event>(const Message&)>& copy);
  // The sender waits until its message is copied.
  Message await_copied(const Route& route);
  // The sender leaves early: when this returns nobody reads its buffer.
  void withdraw(const Route& route) noexcept;

  // Waits until all ranks gave their message number `number` of this topic, and returns them. With
  // a root only that rank waits, and the others get none.
  std::vector<std::string> gather(const std::string& topic, std::int64_t number, int rank,
                                  std::string message, double seconds, int root = kNoRoot);

 private:
  static constexpr int kNoRoot = -1;
  struct Meeting {
    Posts posts;
    std::vector<bool> here;
    int num_here = 0, num_done = 0, num_gone = 0;
  };
  struct Letters {  // of one call of HostGroup::gather
    std::vector<std::string> messages;
    std::vector<bool> here;
    int num_here = 0, num_gone = 0;
  };
  Meeting& arrive(std::int64_t number, int rank, Post post);
  Events depart(std::int64_t number, Meeting& meeting, int rank, std::shared_ptr<Event> done);
  std::string missing_text(const std::vector<bool>& here, int rank, const std::string& what,
                           double seconds) const;

  const std::shared_ptr<World> world_;
  std::vector<int> world_ranks_;
  std::map<std::int64_t, Meeting> meetings_;
  std::map<Route, Message> messages_;
  std::map<std::pair<std::string, std::int64_t>, Letters> letters_;  // by topic and number
};

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group,
                                                       int rank);
std::unique_ptr<HostGroup> make_thread_host_group(std::shared_ptr<ThreadGroup> group, int rank);

// Why the posts of one call do not fit together; empty when they do.
std::string disagreement(const Posts& posts, const ThreadGroup& group);

}  // namespace bloomery
