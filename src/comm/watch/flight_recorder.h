// The last calls of a rank between ranks, with where in its work it made each and what became of
// it. It is written at every call and read when something hangs; any thread may do either.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/watch/status.h"
#include "comm/world.h"

namespace bloomery {

// Where a rank is in its work. The text is a literal.
struct Position {
  std::int64_t iteration = 0;  // 0: before the first
  const char* work = "start";
  std::int64_t micro_batch = -1;  // -1: no particular one
  int chunk = 0;
  std::string text() const;  // "iteration 12, backward of micro-batch 3, chunk 0"
};

class FlightRecorder {
 public:
  static constexpr std::size_t kTold = 64;  // calls that a report has of each rank
  // Calls that are kept: a GPU may be that many behind the host, and the one that it waits in is
  // the one to be told.
  static constexpr std::size_t kKept = 1024;

  // When the world has failed nothing is written any more: what the rank did last stays.
  FlightRecorder(int rank, std::shared_ptr<const World> world);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  int rank() const { return rank_; }

  // Where the rank is from now on.
  void set_iteration(std::int64_t iteration);
  void set_work(const char* work, std::int64_t micro_batch = -1, int chunk = 0);

  // A group of ranks, as calls name it. `id` is the same on all members and no other group's.
  int add_group(std::string name, std::vector<int> members, std::uint32_t id);
  void rename_group(int group, std::string name);
  std::uint32_t next_group_id() const;

  struct Call {
    std::string_view name;
    const char* detail = "";  // a literal: "sum"
    int root = -1;
    DType dtype = DType::fp32;
    std::int64_t count = -1;              // elements; -1: no tensor
    std::span<const Transfer> transfers;  // of an exchange
    bool numbered = true;                 // a collective call that all of the group make in turn
    const Stream* stream = nullptr;       // of its tensors
  };
  using Ticket = std::uint64_t;
  Ticket called(int group, const Call& call);
  void started(Ticket ticket);
  void done(Ticket ticket);
  // The same on a CUDA stream, when that comes there: look_at_device() finds out.
  void starts_on(Ticket ticket, Stream& stream);
  void ends_on(Ticket ticket, Stream& stream);

  // Calls of CPU streams are told when they are done, times in nanoseconds of the steady clock, by
  // the thread that did them. Null: to nobody.
  struct Finished {
    std::string text, group;
    const Stream* stream;
    std::int64_t started, done;
  };
  void set_listener(std::function<void(const Finished&)> listener);

  // Seconds that calls on this stream took, all since the start. Of a GPU those that were seen.
  double seconds_in_calls(const Stream& stream) const;

  void look_at_device();
  // Of calls on a GPU: how long the one that waits longest has, and what it is.
  struct Waiting {
    double seconds = 0;
    std::string text;
  };
  std::optional<Waiting> waiting_on_device() const;

  // The newest calls, and older ones that are not done.
  RankStatus status(std::size_t num_calls = kTold) const;

 private:
  struct Slot;
  struct Group {
    std::string name;
    std::vector<int> members;
    std::uint32_t id;
    std::int64_t next_number = 0;
  };

  Slot* find(Ticket ticket);  // null: it is no longer kept
  std::string call_text(const Slot& slot) const;
  CallRecord told(const Slot& slot, std::int64_t now) const;

  const int rank_;
  const std::shared_ptr<const World> world_;
  const std::string host_;
  mutable std::mutex mutex_;
  Position position_;
  std::function<void(const Finished&)> listener_;
  std::map<const void*, double> seconds_in_calls_;  // by stream; of a GPU its native one
  std::vector<Group> groups_;
  Ticket next_ = 0;
  int gpu_ = -1;             // of calls on CUDA streams
  std::vector<Slot> slots_;  // call n is at n % kKept
};

}  // namespace bloomery
