// The control plane of ranks that are processes: each is connected to the first one, which needs
// neither MPI nor NCCL.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/host_group.h"
#include "comm/tcp/frame.h"
#include "comm/tcp/hub.h"
#include "comm/tcp/socket.h"
#include "comm/world.h"

namespace bloomery {

struct ControlOptions {
  int rank = 0, size = 1;
  std::string host = "127.0.0.1";  // of the first rank
  int port = 0;
  int listener = -1;             // of the first rank: a socket that listens already; -1: none
  Secret secret{};               // of the start
  std::uint64_t job = 0;         // its number; 0: unknown
  std::uint64_t build = 0;       // of the program
  double start_seconds = 300;    // within which all ranks must come
  double timeout_seconds = 600;  // as long as a group waits for a rank
};

class ControlPlane {
 public:
  // Collective over all ranks. An Error says who did not come, or why this one cannot.
  explicit ControlPlane(const ControlOptions& options);
  // The first rank stays until the others have left, at most as long as it waits for them in a
  // call. If that is not enough, the world has failed afterwards.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // Makes no call any more, and tells the others so. What follows may wait for them elsewhere.
  void leave();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::vector<int> all_ranks() const;
  const std::shared_ptr<World>& world() const { return world_; }
  // Where the machine of a rank is reached.
  const std::string& address(int rank) const { return addresses_[static_cast<std::size_t>(rank)]; }

  // A group, of which all members know the name and each other; to be called before gather().
  void announce(const std::string& group, const std::vector<int>& members);
  std::vector<std::string> gather(const std::string& group, const std::string& topic,
                                  std::int64_t number, const std::string& mine, double seconds);
  // The same for world rank `root` alone; the others leave their message and get none.
  std::vector<std::string> gather_at(int root, const std::string& group, const std::string& topic,
                                     std::int64_t number, const std::string& mine, double seconds);

  // Where this rank stands, for others to know; `last`: what it says after a failure.
  void tell_status(const std::string& bytes, bool last);
  struct Status {
    bool answered = false;  // after the failure
    double age = 0;         // seconds
    std::string bytes;      // empty: the rank never told
  };
  // After a failure for which a rank is silent, of all ranks. The first rank has the last words of
  // those that answer within a few seconds, the second what was known shortly before, the others
  // nothing.
  std::vector<Status> statuses();
  bool hub_is_silent() const;                // the first rank does not answer
  bool has_lost_hub() const;                 // its process ended
  void wait_for_end_of_hub(double seconds);  // at most

 private:
  using Key = std::tuple<std::string, std::string, std::int64_t>;

  void start();
  void listen(const Hello& hello);
  void read_frames();
  std::optional<Frame> receive_frame() const;
  std::uint32_t longest_frame() const;
  void handle(const Frame& frame);
  void handle_statuses(const Frame& frame);
  void send_letter(const Key& key, const std::string& mine, double seconds, int root);
  std::vector<std::string> await_answer(const Key& key, double seconds);
  // The connection to the hub. The world, which others hold too, tells failures through it.
  struct Line {
    Socket socket;
    std::mutex sending;
    void send(const Frame& frame) noexcept;
  };

  const ControlOptions options_;
  const std::shared_ptr<Line> line_;
  const std::shared_ptr<World> world_;
  std::vector<std::string> addresses_;
  std::unique_ptr<Hub> hub_;                         // of the first rank
  std::map<Key, std::vector<std::string>> answers_;  // under the world's mutex
  bool welcomed_ = false;                            // likewise
  bool said_bye_ = false, leaving_ = false;          // likewise
  mutable std::mutex heard_mutex_;
  std::condition_variable heard_something_;
  std::vector<Status> statuses_;   // under heard_mutex_
  Deadline heard_;                 // from the hub, likewise
  bool reader_has_ended_ = false;  // likewise
  std::thread reader_;
};

// The group of the ranks `members`, this one among them. Several with the same name would mix up
// their messages.
std::unique_ptr<HostGroup> make_tcp_host_group(std::shared_ptr<ControlPlane> control,
                                               const std::string& name, std::vector<int> members);

}  // namespace bloomery
