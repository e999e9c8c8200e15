#include "comm/tcp/hub.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

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

Hub::Hub(Socket listener, Socket own, int size, double start_seconds)
    : listener_(std::move(listener)),
      size_(size),
      start_deadline_(seconds_from_now(start_seconds)) {
  set_blocking(listener_, false);
  set_blocking(own, false);
  connections_.push_back({.socket = std::move(own)});
  thread_ = std::thread([this] { run(); });
}

Hub::~Hub() { thread_.join(); }

void Hub::run() {
  while (!done()) {
    serve_once();
  }
}

// The first rank is the last one that this thread serves.
bool Hub::done() const {
  const bool quiet =
      std::ranges::all_of(connections_, [](const Connection& c) { return c.closed || c.rank < 0; });
  const bool own_left = connections_.front().closed;
  return own_left && (quiet || (failed_ && seconds_until(last_word_) == 0));
}

void Hub::serve_once() {
  std::vector<pollfd> waits{{listener_.descriptor(), POLLIN, 0}};
  for (const Connection& connection : connections_) {
    const auto events = static_cast<short>(connection.out.empty() ? POLLIN : POLLIN | POLLOUT);
    waits.push_back({connection.closed ? -1 : connection.socket.descriptor(), events, 0});
  }
  poll(waits.data(), waits.size(), 100);
  for (std::size_t i = 1; i < waits.size(); ++i) {
    Connection& connection = connections_[i - 1];
    if ((waits[i].revents & POLLOUT) != 0) {
      write(connection);
    }
    if ((waits[i].revents & ~POLLOUT) != 0) {
      read(connection);
    }
  }
  if (waits[0].revents != 0) {
    take_new();
  }
  refuse_absent();
  look_at_deadlines();
  tell_statuses();
}

void Hub::take_new() {
  while (Socket socket = accept_from(listener_)) {
    set_for_ranks(socket);
    set_blocking(socket, false);
    connections_.push_back({.socket = std::move(socket)});
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
  while (!connection.closed && !connection.out.empty()) {
    const ssize_t count = ::send(connection.socket.descriptor(), connection.out.data(),
                                 connection.out.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) {
      return;  // full, or gone, which read() will find
    }
    connection.out.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

void Hub::close(Connection& connection) {
  connection.closed = true;
  connection.socket = Socket();
  const int rank = connection.rank;
  if (rank >= 0 && !left_.contains(rank) && !failed_) {
    const std::string& address = connection.address;
    fail({concat("rank ", rank, " failed: its process ended without a word, or its machine ",
                 address.empty() ? "" : concat("(", address, ") "), "was lost"),
          rank, false, true});
  }
}

void Hub::handle(Connection& connection, const Frame& frame) {
  FieldReader fields(frame.body);
  if (connection.rank < 0) {
    check(frame.kind == Frame::Kind::hello, "a stranger");
    return handle_hello(connection, fields);
  }
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
      return look_at_deadlines();
    default:
      throw Error("a message that ranks do not send");
  }
}

void Hub::handle_hello(Connection& connection, FieldReader fields) {
  check(fields.number<std::uint32_t>() == Frame::kProtocol, "a stranger");
  const int rank = fields.number<std::int32_t>(), size = fields.number<std::int32_t>();
  if (by_rank_.contains(rank)) {
    return refuse(connection,
                  concat("two processes say that they are rank ", rank,
                         ": another run uses this port, or the launcher gives ranks twice"));
  }
  if (size != size_ || rank < 0 || rank >= size_) {
    return refuse(connection, concat("rank ", rank, " was told of ", size, " ranks, and rank 0 of ",
                                     size_, ": they belong to different starts"));
  }
  connection.rank = rank;
  connection.address = rank == 0 ? "" : peer_address(connection.socket);
  by_rank_[rank] = static_cast<std::size_t>(&connection - connections_.data());
  if (static_cast<int>(by_rank_.size()) == size_ && !failed_) {
    all_came_ = true;
    FieldWriter addresses;
    for (const auto& [each, place] : by_rank_) {
      addresses.text(connections_[place].address);
    }
    const Frame welcome{Frame::Kind::welcome, addresses.take()};
    for (int to = 0; to < size_; ++to) {
      send(to, welcome);
    }
  }
}

// It ends; the others go on waiting for the one that they expect.
void Hub::refuse(Connection& connection, const std::string& why) {
  connection.out += failure_frame({why, 0, true}).bytes();
  write(connection);
}

void Hub::handle_letter(int rank, FieldReader fields) {
  const std::string group = fields.text(), topic = fields.text();
  const Key key{group, topic, fields.number<std::int64_t>()};
  const auto seconds = fields.number<double>();
  Letters& letters = letters_[key];
  if (letters.texts.empty()) {
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
    send(member, frame);
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
    if (!by_rank_.contains(rank)) {
      absent.push_back(rank);
    }
  }
  fail({concat("of ", size_, " ranks these did not come to rank 0: ", list(absent),
               "; look at their output, and whether their machines reach the first one"),
        absent.front()});
}

void Hub::fail(const World::Failure& failure, int except) {
  if (failed_) {
    return;
  }
  failed_ = true;
  last_word_ = seconds_from_now(kLastWordSeconds);
  gathers_last_words_ = failure.silence;
  letters_.clear();
  const Frame frame = failure_frame(failure);
  for (const auto& [rank, place] : by_rank_) {
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
    const bool all_answered = std::ranges::all_of(by_rank_, [this](const auto& each) {
      const auto found = statuses_.find(each.first);
      return connections_[each.second].closed || found == statuses_.end() ||
             found->second.answered || seconds_since(found->second.taken) > kSilentSeconds;
    });
    if (all_answered || seconds_until(last_word_) < kLastWordSeconds - kStatusSeconds) {
      gathers_last_words_ = false;
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
  Connection& connection = connections_[by_rank_.at(rank)];
  connection.out += frame.bytes();
  write(connection);
}

}  // namespace bloomery
