#include "comm/watch/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "build_config.h"
#include "device/cuda.h"
#include "device/event_query.h"

namespace bloomery {
namespace {

using State = CallRecord::State;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string Position::text() const {
  std::string text = iteration > 0 ? concat("iteration ", iteration, ", ", work) : work;
  if (micro_batch >= 0) {
    text += concat(" of micro-batch ", micro_batch, ", chunk ", chunk);
  }
  return text;
}

struct FlightRecorder::Slot {
  struct Peer {
    bool sends;
    int rank;  // in the group
  };
  Ticket ticket = 0;
  bool used = false;
  std::array<char, 40> name{};
  const char* detail = "";
  int root = -1, group = 0;
  DType dtype = DType::fp32;
  std::int64_t count = -1, number = -1;
  std::array<Peer, 4> peers{};
  int num_peers = 0;
  Position position;
  State state = State::called;
  std::int64_t called = 0, started = 0, done = 0;  // times; a GPU's are when they were seen
  const Stream* on = nullptr;                      // null: no tensors
  void* stream = nullptr;                          // of a GPU; null: of a CPU
  void *begins = nullptr, *ends = nullptr;         // its events, kept from call to call
  bool end_is_known = false;                       // `ends` is this call's
};

FlightRecorder::FlightRecorder(int rank, std::shared_ptr<const World> world)
    : rank_(rank), world_(std::move(world)), host_(host_name()), slots_(kKept) {}

FlightRecorder::~FlightRecorder() {
  if constexpr (build::cuda) {
    for (const Slot& slot : slots_) {
      for (void* const event : {slot.begins, slot.ends}) {
        if (event != nullptr) {
          cuda::destroy_event(event);
        }
      }
    }
  }
}

void FlightRecorder::set_iteration(std::int64_t iteration) {
  const std::lock_guard lock(mutex_);
  if (!world_->failed()) {
    position_.iteration = iteration;
  }
}

void FlightRecorder::set_work(const char* work, std::int64_t micro_batch, int chunk) {
  const std::lock_guard lock(mutex_);
  if (!world_->failed()) {
    position_ = {position_.iteration, work, micro_batch, chunk};
  }
}

int FlightRecorder::add_group(std::string name, std::vector<int> members, std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  groups_.push_back({std::move(name), std::move(members), id});
  return static_cast<int>(groups_.size()) - 1;
}

void FlightRecorder::rename_group(int group, std::string name) {
  const std::lock_guard lock(mutex_);
  groups_[static_cast<std::size_t>(group)].name = std::move(name);
}

std::uint32_t FlightRecorder::next_group_id() const {
  const std::lock_guard lock(mutex_);
  return groups_.empty() ? 0 : groups_.back().id + 1;
}

FlightRecorder::Ticket FlightRecorder::called(int group, const Call& call) {
  const std::lock_guard lock(mutex_);
  if (world_->failed()) {
    return ~Ticket{0};  // of no call
  }
  const Ticket ticket = next_++;
  Slot& slot = slots_[ticket % kKept];
  slot.ticket = ticket;
  slot.used = true;
  slot.name = {};
  std::memcpy(slot.name.data(), call.name.data(), std::min(call.name.size(), slot.name.size() - 1));
  slot.detail = call.detail;
  slot.root = call.root;
  slot.group = group;
  slot.dtype = call.dtype;
  slot.count = call.count;
  slot.number = call.numbered ? groups_[static_cast<std::size_t>(group)].next_number++ : -1;
  slot.num_peers = 0;
  for (const Transfer& each : call.transfers) {
    if (slot.num_peers < static_cast<int>(slot.peers.size())) {
      slot.peers[static_cast<std::size_t>(slot.num_peers++)] = {each.kind == Transfer::Kind::send,
                                                                each.peer};
    }
  }
  slot.on = call.stream;
  slot.position = position_;
  slot.state = State::called;
  slot.called = slot.started = now_ns();
  slot.done = 0;
  slot.stream = nullptr;
  slot.end_is_known = false;
  return ticket;
}

FlightRecorder::Slot* FlightRecorder::find(Ticket ticket) {
  Slot& slot = slots_[ticket % kKept];
  return slot.ticket == ticket && !world_->failed() ? &slot : nullptr;
}

void FlightRecorder::started(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (Slot* const slot = find(ticket)) {
    slot->state = State::waiting;
    slot->started = now_ns();
  }
}

void FlightRecorder::done(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (Slot* const slot = find(ticket)) {
    slot->state = State::done;
    slot->done = now_ns();
    if (slot->on != nullptr) {
      seconds_in_calls_[slot->on] += seconds(slot->done - slot->started);
    }
    if (listener_ && slot->on != nullptr) {
      listener_({call_text(*slot), groups_[static_cast<std::size_t>(slot->group)].name, slot->on,
                 slot->started, slot->done});
    }
  }
}

void FlightRecorder::set_listener(std::function<void(const Finished&)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

double FlightRecorder::seconds_in_calls(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  const void* const key = stream.on_cuda() ? stream.native() : static_cast<const void*>(&stream);
  const auto found = seconds_in_calls_.find(key);
  return found == seconds_in_calls_.end() ? 0 : found->second;
}

void FlightRecorder::starts_on(Ticket ticket, Stream& stream) {
  if constexpr (build::cuda) {
    const std::lock_guard lock(mutex_);
    if (Slot* const slot = find(ticket)) {
      if (slot->begins == nullptr) {
        slot->begins = cuda::make_event(stream.device().options().index);
        slot->ends = cuda::make_event(stream.device().options().index);
      }
      cuda::record_event(slot->begins, stream.native());
      slot->stream = stream.native();
      gpu_ = stream.device().options().index;
    }
  }
  static_cast<void>(stream);
}

void FlightRecorder::ends_on(Ticket ticket, Stream& stream) {
  if constexpr (build::cuda) {
    const std::lock_guard lock(mutex_);
    if (Slot* const slot = find(ticket)) {
      cuda::record_event(slot->ends, stream.native());
      slot->end_is_known = true;
    }
  }
  static_cast<void>(stream);
}

// Streams work in order: behind a call that is not done nothing of its stream is.
void FlightRecorder::look_at_device() {
  if constexpr (build::cuda) {
    const std::lock_guard lock(mutex_);
    if (gpu_ >= 0) {  // else the runtime would take up memory of the first GPU
      cuda::use_device(gpu_);
    }
    std::vector<void*> busy;
    for (Ticket ticket = next_ - std::min<Ticket>(next_, kKept); ticket < next_; ++ticket) {
      Slot* const slot = find(ticket);
      if (slot == nullptr || slot->stream == nullptr || slot->state == State::done ||
          std::ranges::find(busy, slot->stream) != busy.end()) {
        continue;
      }
      if (slot->state == State::called && cuda::event_happened(slot->begins)) {
        slot->state = State::waiting;
        slot->started = now_ns();
      }
      if (slot->end_is_known && cuda::event_happened(slot->ends)) {
        slot->state = State::done;
        slot->done = now_ns();
        try {
          seconds_in_calls_[slot->stream] += cuda::seconds_between(slot->begins, slot->ends);
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a device that failed says it
        }
      } else {
        busy.push_back(slot->stream);
      }
    }
  }
}

std::optional<FlightRecorder::Waiting> FlightRecorder::waiting_on_device() const {
  const std::lock_guard lock(mutex_);
  const Slot* longest = nullptr;
  for (const Slot& slot : slots_) {
    if (slot.used && slot.stream != nullptr && slot.state == State::waiting &&
        (longest == nullptr || slot.started < longest->started)) {
      longest = &slot;
    }
  }
  if (longest == nullptr) {
    return {};
  }
  const CallRecord call = told(*longest, now_ns());
  return Waiting{call.waited, concat(call.text, " of ", call.group, " (", call.position, ")")};
}

std::string FlightRecorder::call_text(const Slot& slot) const {
  const Group& group = groups_[static_cast<std::size_t>(slot.group)];
  std::string text = slot.name.data();
  text += slot.detail[0] == '\0' ? "" : concat(" ", slot.detail);
  text += slot.root < 0 ? ""
                        : concat(" from rank ", group.members[static_cast<std::size_t>(slot.root)]);
  text += slot.count < 0 ? "" : concat(" of ", slot.count, " ", slot.dtype);
  for (int i = 0; i < slot.num_peers; ++i) {
    const Slot::Peer& peer = slot.peers[static_cast<std::size_t>(i)];
    text += concat(i == 0 ? " " : ", ", peer.sends ? "to rank " : "from rank ",
                   group.members[static_cast<std::size_t>(peer.rank)]);
  }
  return text;
}

CallRecord FlightRecorder::told(const Slot& slot, std::int64_t now) const {
  const Group& group = groups_[static_cast<std::size_t>(slot.group)];
  std::vector<int> members = group.members;
  if (slot.num_peers > 0) {  // of an exchange only those take part
    members = {rank_};
    for (int i = 0; i < slot.num_peers; ++i) {
      members.push_back(
          group.members[static_cast<std::size_t>(slot.peers[static_cast<std::size_t>(i)].rank)]);
    }
    std::ranges::sort(members);
    members.erase(std::unique(members.begin(), members.end()), members.end());
  }
  const bool started = slot.state != State::called;
  const std::int64_t until = slot.state == State::done ? slot.done : now;
  return {.text = call_text(slot),
          .group = group.name,
          .members = std::move(members),
          .group_id = group.id,
          .number = slot.number,
          .position = slot.position.text(),
          .state = slot.state,
          .called_ago = seconds(now - slot.called),
          .waited = started ? seconds(until - slot.started) : 0};
}

RankStatus FlightRecorder::status(std::size_t num_calls) const {
  const std::lock_guard lock(mutex_);
  RankStatus status{
      .rank = rank_, .host = host_, .process = getpid(), .position = position_.text(), .calls = {}};
  const std::int64_t now = now_ns();
  constexpr int kMostOld = 8;
  int old = 0;
  for (Ticket ticket = next_ - std::min<Ticket>(next_, kKept); ticket < next_; ++ticket) {
    const Slot& slot = slots_[ticket % kKept];
    const bool is_new = next_ - ticket <= num_calls;
    if (is_new || (slot.state != State::done && old++ < kMostOld)) {
      status.calls.push_back(told(slot, now));
    }
  }
  return status;
}

}  // namespace bloomery
