#include "comm/tcp/control.h"

#include <numeric>
#include <utility>

#include "comm/gather_at.h"

namespace bloomery {
namespace {

// How much later than the first rank, which has the say, another one finds a deadline missed.
constexpr double kSlackSeconds = 5;
constexpr double kSilentSeconds = 2.5;  // without the hub's beat of each second
constexpr double kStatusesSeconds = 4;  // the hub takes less
constexpr double kLeaveSeconds = 3;     // after a failure: until the hub has closed the line
constexpr std::uint32_t kFirstBytes = 1
                                      << 20;  // of a frame, until it is clear that ranks send them

}  // namespace

ControlPlane::ControlPlane(const ControlOptions& options)
    : options_(options),
      line_(std::make_shared<Line>()),
      world_(std::make_shared<World>(
          options.timeout_seconds,
          [line = line_](const World::Failure& failure) { line->send(failure_frame(failure)); })),
      addresses_(static_cast<std::size_t>(options.size)),
      heard_(std::chrono::steady_clock::now()) {
  start();
  try {
    World::Lock lock = world_->lock();
    world_->wait(
        lock, rank(), [this] { return welcomed_; },
        [this] {
          return concat("rank 0 at ", options_.host, " port ", options_.port,
                        " does not answer: is it one of this run?");
        },
        options_.start_seconds + kSlackSeconds);
  } catch (...) {
    line_->socket.shut_down();
    reader_.join();
    throw;
  }
}

void ControlPlane::start() {
  const Hello hello{.rank = rank(),
                    .size = size(),
                    .build = options_.build,
                    .job = options_.job,
                    .secret = options_.secret};
  if (rank() == 0) {
    listen(hello);
  } else {
    line_->socket =
        connect_to(options_.host, options_.port, seconds_from_now(options_.start_seconds),
                   concat("the first rank (this is rank ", rank(), " of ", size(), ")"));
    set_for_ranks(line_->socket);
    send_all(line_->socket, {reinterpret_cast<const char*>(&hello), sizeof hello});
  }
  reader_ = std::thread([this] { read_frames(); });
}

void ControlPlane::listen(const Hello& hello) {
  auto [mine, hubs] = socket_pair();
  line_->socket = std::move(mine);
  Socket listener =
      options_.listener >= 0 ? Socket(options_.listener) : listen_at(options_.host, options_.port);
  hub_ = std::make_unique<Hub>(std::move(listener), std::move(hubs), hello, options_.start_seconds);
}

void ControlPlane::leave() {
  {
    const World::Lock lock = world_->lock();
    if (std::exchange(said_bye_, true)) {
      return;
    }
  }
  FieldWriter fields;
  line_->send({Frame::Kind::bye, fields.number(world_->timeout_seconds()).take()});
}

ControlPlane::~ControlPlane() {
  leave();
  {
    const World::Lock lock = world_->lock();
    leaving_ = true;
  }
  line_->socket.end_sending();  // the hub answers by closing the connection
  if (world_->failed()) {       // unless it is silent
    wait_for_end_of_hub(kLeaveSeconds);
    line_->socket.shut_down();
  }
  reader_.join();
  if (hub_) {
    if (const auto stragglers = hub_->finish()) {
      world_->learn(*stragglers);
    }
  }
}

std::vector<int> ControlPlane::all_ranks() const {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void ControlPlane::Line::send(const Frame& frame) noexcept {
  const std::lock_guard lock(sending);
  const std::string bytes = frame.bytes();
  send_all(socket, bytes);  // a broken connection is found by the reader
}

void ControlPlane::read_frames() {
  std::string cause = concat("rank 0 failed: its process ended without a word, or its machine (",
                             options_.host, ") was lost");
  try {
    while (const auto frame = receive_frame()) {
      handle(*frame);
    }
  } catch (const std::exception&) {
    cause = concat("another program answers at ", options_.host, " port ", options_.port,
                   ", where rank 0 is expected: give another MASTER_PORT");
  }
  World::Lock lock = world_->lock();
  const bool lost = !leaving_;
  lock.unlock();
  {
    const std::lock_guard heard(heard_mutex_);
    reader_has_ended_ = true;
  }
  heard_something_.notify_all();
  if (lost) {
    world_->learn({cause, 0, false, true});
  }
}

// None when the connection has ended.
std::optional<Frame> ControlPlane::receive_frame() const {
  std::string header(Frame::kHeaderBytes, '\0');
  if (!receive_all(line_->socket, header)) {
    return {};
  }
  Frame frame;
  std::uint32_t length = 0;
  std::memcpy(&frame.kind, header.data(), 4);
  std::memcpy(&length, header.data() + 4, 4);
  check(length <= longest_frame(), "no message of a rank");
  frame.body.resize(length);
  return receive_all(line_->socket, frame.body) ? std::optional(std::move(frame)) : std::nullopt;
}

std::uint32_t ControlPlane::longest_frame() const {
  const World::Lock lock = world_->lock();
  return welcomed_ ? Frame::kMaxBytes : kFirstBytes;
}

void ControlPlane::handle(const Frame& frame) {
  FieldReader fields(frame.body);
  if (frame.kind == Frame::Kind::failure) {
    return world_->learn(read_failure(fields));
  }
  if (frame.kind == Frame::Kind::statuses) {
    return handle_statuses(frame);
  }
  {
    const World::Lock lock = world_->lock();
    if (frame.kind == Frame::Kind::welcome) {
      for (std::string& address : addresses_) {
        address = fields.text();
        // Whoever reaches the first rank by an address of its own machine is on that machine.
        if (address.empty() || is_loopback(address)) {
          address = options_.host;
        }
      }
      welcomed_ = true;
    } else if (frame.kind == Frame::Kind::letters) {
      const std::string group = fields.text(), topic = fields.text();
      std::vector<std::string>& texts = answers_[{group, topic, fields.number<std::int64_t>()}];
      texts.resize(fields.number<std::uint32_t>());
      for (std::string& text : texts) {
        text = fields.text();
      }
    } else {
      throw Error("a message that the first rank does not send");
    }
  }
  world_->notify();
}

void ControlPlane::handle_statuses(const Frame& frame) {
  {
    const std::lock_guard lock(heard_mutex_);
    heard_ = std::chrono::steady_clock::now();
    if (!frame.body.empty()) {
      FieldReader fields(frame.body);
      statuses_.resize(static_cast<std::size_t>(size()));
      for (Status& status : statuses_) {
        status.answered = fields.number<std::uint8_t>() != 0;
        status.age = fields.number<double>();
        status.bytes = fields.text();
      }
    }
  }
  heard_something_.notify_all();
}

void ControlPlane::tell_status(const std::string& bytes, bool last) {
  FieldWriter fields;
  line_->send({Frame::Kind::status, fields.number<std::uint8_t>(last).text(bytes).take()});
}

std::vector<ControlPlane::Status> ControlPlane::statuses() {
  std::unique_lock lock(heard_mutex_);
  if (rank() == 0) {
    heard_something_.wait_for(lock, std::chrono::duration<double>(kStatusesSeconds),
                              [this] { return !statuses_.empty(); });
    return statuses_;
  }
  std::vector<Status> all = statuses_;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - heard_;
  for (Status& status : all) {
    status.age += since.count();
  }
  return all;
}

bool ControlPlane::hub_is_silent() const {
  const std::lock_guard lock(heard_mutex_);
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - heard_;
  return rank() != 0 && since.count() > kSilentSeconds;
}

void ControlPlane::wait_for_end_of_hub(double seconds) {
  std::unique_lock lock(heard_mutex_);
  heard_something_.wait_for(lock, std::chrono::duration<double>(seconds),
                            [this] { return reader_has_ended_; });
}

bool ControlPlane::has_lost_hub() const {
  const std::lock_guard lock(heard_mutex_);
  return reader_has_ended_;
}

void ControlPlane::announce(const std::string& group, const std::vector<int>& members) {
  FieldWriter fields;
  fields.text(group).number(static_cast<std::uint32_t>(members.size()));
  for (const int member : members) {
    fields.number<std::int32_t>(member);
  }
  line_->send({Frame::Kind::group, fields.take()});
}

std::vector<std::string> ControlPlane::gather(const std::string& group, const std::string& topic,
                                              std::int64_t number, const std::string& mine,
                                              double seconds) {
  const double waited = seconds > 0 ? seconds : world_->timeout_seconds();
  const Key key{group, topic, number};
  send_letter(key, mine, waited, Frame::kToAll);
  return await_answer(key, waited);
}

std::vector<std::string> ControlPlane::gather_at(int root, const std::string& group,
                                                 const std::string& topic, std::int64_t number,
                                                 const std::string& mine, double seconds) {
  const double waited = seconds > 0 ? seconds : world_->timeout_seconds();
  const Key key{group, topic, number};
  send_letter(key, mine, waited, root);
  return rank() == root ? await_answer(key, waited) : std::vector<std::string>();
}

void ControlPlane::send_letter(const Key& key, const std::string& mine, double seconds, int root) {
  world_->check_failed();
  const auto& [group, topic, number] = key;
  FieldWriter fields;
  fields.text(group).text(topic).number(number).number<std::int32_t>(root);
  line_->send({Frame::Kind::letter, fields.number(seconds).text(mine).take()});
}

std::vector<std::string> ControlPlane::await_answer(const Key& key, double seconds) {
  World::Lock lock = world_->lock();
  world_->wait(
      lock, rank(), [&] { return answers_.contains(key); },
      [&] {
        return concat("rank ", rank(), " waited ", seconds, " s in ", std::get<1>(key),
                      " for rank 0, which brings the messages together and does not answer");
      },
      seconds + kSlackSeconds);
  return std::move(answers_.extract(key).mapped());
}

namespace {

class TcpHostGroup final : public HostGroup, public GathersAtOne {
 public:
  TcpHostGroup(std::shared_ptr<ControlPlane> control, std::string name, std::vector<int> members)
      : control_(std::move(control)), name_(std::move(name)), members_(std::move(members)) {
    for (int i = 0; i < size(); ++i) {
      rank_ = members_[static_cast<std::size_t>(i)] == control_->rank() ? i : rank_;
    }
    control_->announce(name_, members_);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  std::vector<std::string> gather(const std::string& topic, std::string mine,
                                  double seconds) override {
    return control_->gather(name_, topic, next_number(topic), mine, seconds);
  }
  std::vector<std::string> gather_at(int root, const std::string& topic, std::string mine,
                                     double seconds) override {
    return control_->gather_at(members_.at(static_cast<std::size_t>(root)), name_, topic,
                               next_number(topic), mine, seconds);
  }

  void abort(const std::string& reason, bool mistake) noexcept override {
    control_->world()->fail(control_->rank(), reason, mistake);
  }
  World* world() override { return control_->world().get(); }

 private:
  std::int64_t next_number(const std::string& topic) {
    const std::lock_guard lock(mutex_);
    return next_[topic]++;
  }

  const std::shared_ptr<ControlPlane> control_;
  const std::string name_;
  const std::vector<int> members_;  // world ranks
  int rank_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::int64_t> next_;  // by topic
};

}  // namespace

std::unique_ptr<HostGroup> make_tcp_host_group(std::shared_ptr<ControlPlane> control,
                                               const std::string& name, std::vector<int> members) {
  return std::make_unique<TcpHostGroup>(std::move(control), name, std::move(members));
}

}  // namespace bloomery
