#include "comm/tcp/hub.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"

namespace bloomery {
namespace {

constexpr double kLastWordSeconds = 5;
constexpr double kStatusSeconds = 3;  // of them, for what ranks tell of themselves
constexpr double kBeatSeconds = 1;
constexpr double kSilentSeconds = 2.5;  // a rank that told nothing for so long will not answer

double seconds_since(Deadline time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    text += concat(text.empty() ? "" : ", ", rank);
  }
  return text;
}

}  // namespace

Frame failure_frame(const World::Failure& failure) {
  FieldWriter fields;
  fields.number<std::int32_t>(failure.rank).number<std::uint8_t>(failure.mistake);
  fields.number<std::uint8_t>(failure.silence);
  return {Frame::Kind::failure, fields.text(failure.text).take()};
}

World::Failure read_failure(FieldReader fields) {
  World::Failure failure;
  failure.rank = fields.number<std::int32_t>();
  failure.mistake = fields.number<std::uint8_t>() != 0;
  failure.silence = fields.number<std::uint8_t>() != 0;
  failure.text = fields.text();
  return failure;
}

Hub::Hub(Socket listener, Socket own, const Hello& mine, double start_seconds)
    : mine_(mine),
      size_(mine.size),
      start_deadline_(seconds_from_now(start_seconds)),
      pending_(std::move(listener)) {
  set_blocking(own, false);
  connections_[0].socket = std::move(own);
  welcome_if_complete();
  thread_ = std::thread([this] { run(); });
}

std::optional<World::Failure> Hub::finish() {
  if (thread_.joinable()) {
    thread_.join();
  }
  return stragglers_;
}

void Hub::run() {
  while (!done()) {
    serve_once();
  }
}

// The first rank is the last one that this thread serves. After a failure that it told, the others
// may be waiting for its end.
bool Hub::done() const {
  const bool quiet =
      std::ranges::all_of(connections_, [](const auto& each) { return each.second.closed; });
  const bool own_left = connections_.at(0).closed;
  return own_left && (quiet || (failed_ && (told_ || seconds_until(last_word_) == 0)));
}

void Hub::serve_once() {
  std::vector<pollfd> waits;
  std::vector<Connection*> waited_for;
  for (auto& [rank, connection] : connections_) {
    const auto events = static_cast<short>(connection.out.empty() ? POLLIN : POLLIN | POLLOUT);
    waits.push_back({connection.closed ? -1 : connection.socket.descriptor(), events, 0});
    waited_for.push_back(&connection);
  }
  pending_.add_waits(waits);
  poll(waits.data(), waits.size(), 100);
  for (std::size_t i = 0; i < waited_for.size(); ++i) {
    if ((waits[i].revents & POLLOUT) != 0) {
      write(*waited_for[i]);
    }
    if ((waits[i].revents & ~POLLOUT) != 0) {
      read(*waited_for[i]);
    }
  }
  for (PendingConnections::Arrival& arrival : pending_.take()) {
    take(arrival);
  }
  refuse_absent();
  look_at_deadlines();
  end_without_stragglers();
  tell_statuses();
}

std::string Hub::objection(const Hello& hello) const {
  const int rank = hello.rank;
  if (!same_secret(hello.secret, mine_.secret)) {
    return concat("rank ", rank, " does not have the secret of rank 0: another start uses this ",
                  "port, or the machines need the same value of BLOOMERY_SECRET");
  }
  if (hello.build != mine_.build) {
    return concat("rank ", rank, " runs build ", hash_text(hello.build),
                  " of bloomery, and rank 0 ", hash_text(mine_.build),
                  ": start the same program on all machines; compare `bloomery --version`");
  }
  if (hello.job != mine_.job) {
    return concat("rank ", rank, " belongs to another job than rank 0, which uses the same port");
  }
  if (hello.size != size_ || rank < 0 || rank >= size_) {
    return concat("rank ", rank, " was told of ", hello.size, " ranks, and rank 0 of ", size_,
                  ": they belong to different starts");
  }
  return connections_.contains(rank)
             ? concat("two processes say that they are rank ", rank,
                      ": another run uses this port, or the launcher gives ranks twice")
             : std::string();
}

// Who is refused ends; the others go on waiting for the one that they expect.
void Hub::take(PendingConnections::Arrival& arrival) {
  const std::string why = objection(arrival.hello);
  if (!why.empty()) {
    const std::string bytes = failure_frame({why, 0, true}).bytes();
    ::send(arrival.socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return;
  }
  Connection& connection = connections_[arrival.hello.rank];
  connection.rank = arrival.hello.rank;
  connection.address = peer_address(arrival.socket);
  connection.socket = std::move(arrival.socket);
  if (failed_) {
    return send(connection.rank, failure_frame(failure_));
  }
  welcome_if_complete();
}

void Hub::welcome_if_complete() {
  if (static_cast<int>(connections_.size()) < size_) {
    return;
  }
  all_came_ = true;
  pending_.close();
  FieldWriter addresses;
  for (const auto& [rank, connection] : connections_) {
    addresses.text(connection.address);
  }
  const Frame welcome{Frame::Kind::welcome, addresses.take()};
  for (int to = 0; to < size_; ++to) {
    send(to, welcome);
  }
}

void Hub::read(Connection& connection) {
  char bytes[1 << 16];
  while (!connection.closed) {
    const ssize_t count = recv(connection.socket.descriptor(), bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    }
    if (count <= 0) {
      return close(connection);
    }
    connection.in.append(bytes, static_cast<std::size_t>(count));
    try {
      while (const auto frame = Frame::take(connection.in)) {
        handle(connection, *frame);
      }
    } catch (const std::exception&) {  // no rank of ours speaks like this
      return close(connection);
    }
  }
}

void Hub::write(Connection& connection) {
  std::string& out = connection.out;
  while (!connection.closed && connection.sent < out.size()) {
    const ssize_t count = ::send(connection.socket.descriptor(), out.data() + connection.sent,
                                 out.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) {
      break;  // full, or gone, which read() will find
    }
    connection.sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  if (2 * connection.sent > out.size() || out.empty()) {  // so each byte moves once on average
    out.erase(0, connection.sent);
    connection.sent = 0;
  }
}

void Hub::close(Connection& connection) {
  connection.closed = true;
  connection.socket = Socket();
  const int rank = connection.rank;
  if (!left_.contains(rank) && !failed_) {
    const std::string& address = connection.address;
    fail({concat("rank ", rank, " failed: its process ended without a word, or its machine ",
                 address.empty() ? "" : concat("(", address, ") "), "was lost"),
          rank, false, true});
  }
}

void Hub::handle(Connection& connection, const Frame& frame) {
  FieldReader fields(frame.body);
  switch (frame.kind) {
    case Frame::Kind::group: {
      std::vector<int>& members = groups_[fields.text()];
      members.resize(fields.number<std::uint32_t>());
      for (int& member : members) {
        member = fields.number<std::int32_t>();
      }
      return;
    }
    case Frame::Kind::letter:
      return handle_letter(connection.rank, fields);
    case Frame::Kind::failure:
      return fail(read_failure(fields), connection.rank);
    case Frame::Kind::status:
      return handle_status(connection.rank, fields);
    case Frame::Kind::bye:
      left_.insert(connection.rank);
      if (connection.rank == 0) {
        leave_seconds_ = fields.number<double>();
        leave_deadline_ = seconds_from_now(leave_seconds_);
      }
      return look_at_deadlines();
    default:
      throw Error("a message that ranks do not send");
  }
}

void Hub::handle_letter(int rank, FieldReader fields) {
  const std::string group = fields.text(), topic = fields.text();
  const Key key{group, topic, fields.number<std::int64_t>()};
  const auto to = fields.number<std::int32_t>();
  const auto seconds = fields.number<double>();
  Letters& letters = letters_[key];
  if (letters.texts.empty()) {
    letters.to = to;
    letters.first = rank;
    letters.seconds = seconds;
    letters.deadline = seconds_from_now(seconds);
  }
  letters.texts[rank] = fields.text();
  if (missing(key, letters).empty()) {
    answer(key, letters);
    letters_.erase(key);
  }
}

void Hub::answer(const Key& key, const Letters& letters) {
  FieldWriter fields;
  const std::vector<int>& members = groups_[std::get<0>(key)];
  fields.text(std::get<0>(key)).text(std::get<1>(key)).number(std::get<2>(key));
  fields.number(static_cast<std::uint32_t>(members.size()));
  for (const int member : members) {
    fields.text(letters.texts.at(member));
  }
  const Frame frame{Frame::Kind::letters, fields.take()};
  for (const int member : members) {
    if (letters.to == Frame::kToAll || letters.to == member) {
      send(member, frame);
    }
  }
}

std::vector<int> Hub::missing(const Key& key, const Letters& letters) const {
  std::vector<int> absent;
  for (const int member : groups_.at(std::get<0>(key))) {
    if (!letters.texts.contains(member)) {
      absent.push_back(member);
    }
  }
  return absent;
}

void Hub::look_at_deadlines() {
  for (const auto& [key, letters] : letters_) {
    const std::vector<int> absent = missing(key, letters);
    const bool gone =
        std::ranges::any_of(absent, [this](int rank) { return left_.contains(rank); });
    if (gone || seconds_until(letters.deadline) == 0) {
      return fail(
          {concat("rank ", letters.first, " waited ", gone ? "" : concat(letters.seconds, " s "),
                  "in ", std::get<1>(key), " for rank(s) ", list(absent), ", which ",
                  gone ? "have left" : "did not come",
                  ": all ranks of a group must make the same calls"),
           letters.first, false, true});
    }
  }
}

void Hub::refuse_absent() {
  if (all_came_ || failed_ || seconds_until(start_deadline_) > 0) {
    return;
  }
  std::vector<int> absent;
  for (int rank = 0; rank < size_; ++rank) {
    if (!connections_.contains(rank)) {
      absent.push_back(rank);
    }
  }
  fail({concat("of ", size_, " ranks these did not come to rank 0: ", list(absent),
               "; look at their output, and whether their machines reach the first one"),
        absent.front()});
}

// What the first rank did is done: it does not wait longer for another one's end than for its call.
void Hub::end_without_stragglers() {
  if (failed_ || !leave_deadline_ || seconds_until(*leave_deadline_) > 0) {
    return;
  }
  std::vector<int> stragglers, connected;
  for (const auto& [rank, connection] : connections_) {
    if (rank != 0 && !connection.closed) {
      (left_.contains(rank) ? connected : stragglers).push_back(rank);
    }
  }
  stragglers = stragglers.empty() ? connected : stragglers;
  if (stragglers.empty()) {
    return;
  }
  stragglers_ = {concat("rank(s) ", list(stragglers), " did not end within ", leave_seconds_,
                        " s after rank 0: they hang in what they do last"),
                 stragglers.front()};
  fail(*stragglers_);
  last_word_ = {};
}

void Hub::fail(const World::Failure& failure, int except) {
  if (failed_) {
    return;
  }
  failed_ = true;
  failure_ = failure;
  last_word_ = seconds_from_now(kLastWordSeconds);
  gathers_last_words_ = failure.silence;
  letters_.clear();
  const Frame frame = failure_frame(failure);
  for (const auto& [rank, connection] : connections_) {
    if (rank != except) {
      send(rank, frame);
    }
  }
}

void Hub::handle_status(int rank, FieldReader fields) {
  const bool answered = fields.number<std::uint8_t>() != 0;
  statuses_[rank] = {std::chrono::steady_clock::now(), answered, fields.text()};
}

void Hub::tell_statuses() {
  if (gathers_last_words_) {
    const bool all_answered = std::ranges::all_of(connections_, [this](const auto& each) {
      const auto found = statuses_.find(each.first);
      return each.second.closed || found == statuses_.end() || found->second.answered ||
             seconds_since(found->second.taken) > kSilentSeconds;
    });
    if (all_answered || seconds_until(last_word_) < kLastWordSeconds - kStatusSeconds) {
      gathers_last_words_ = false;
      told_ = true;
      send(0, statuses());
    }
  } else if (all_came_ && !failed_ && seconds_until(next_beat_) == 0) {
    next_beat_ = seconds_from_now(kBeatSeconds);
    for (int rank = 1; rank < size_; ++rank) {
      send(rank, rank == 1 ? statuses() : Frame{Frame::Kind::statuses, {}});
    }
  }
}

Frame Hub::statuses() const {
  FieldWriter fields;
  for (int rank = 0; rank < size_; ++rank) {
    const auto found = statuses_.find(rank);
    const bool known = found != statuses_.end();
    fields.number<std::uint8_t>(known && found->second.answered);
    fields.number(known ? seconds_since(found->second.taken) : 0.0);
    fields.text(known ? found->second.bytes : std::string());
  }
  return {Frame::Kind::statuses, fields.take()};
}

void Hub::send(int rank, const Frame& frame) {
  Connection& connection = connections_.at(rank);
  connection.out += frame.bytes();
  write(connection);
}

}  // namespace bloomery
