#include "apps/launch/rendezvous.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/build_number.h"
#include "base/hash.h"
#include "base/log.h"

namespace bloomery {
namespace {

// An address that a socket can be bound to is one of this machine's.
bool is_own_address(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  bool own = false;
  for (const addrinfo* each = found; each != nullptr && !own; each = each->ai_next) {
    const Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    own = socket && bind(socket.descriptor(), each->ai_addr, each->ai_addrlen) == 0;
  }
  freeaddrinfo(found);
  return own;
}

Secret given_secret() {
  const char* const text = std::getenv("BLOOMERY_SECRET");
  return text == nullptr || *text == '\0' ? Secret{} : secret_from(text);
}

Hello hello_of(const MeetingOptions& options) {
  Hello hello;
  hello.size = options.ranks;
  hello.build = build_number();
  hello.job = xxh3("rendezvous " + options.id);
  hello.secret = given_secret();  // before there is one that a meeting drew
  return hello;
}

// Up to a line break, which is left out; empty when the other side is gone.
std::string read_line(const Socket& socket, Deadline deadline) {
  std::string line;
  for (char byte = 0;;) {
    pollfd wait{socket.descriptor(), POLLIN, 0};
    const double seconds = seconds_until(deadline);
    if (seconds == 0 || poll(&wait, 1, static_cast<int>(std::min(seconds, 1.0) * 1000)) < 0) {
      return {};
    }
    if (wait.revents == 0) {
      continue;
    }
    if (recv(socket.descriptor(), &byte, 1, 0) <= 0 || line.size() > 4096) {
      return {};
    }
    if (byte == '\n') {
      return line;
    }
    line += byte;
  }
}

constexpr const char* kRefused = "refused ";

}  // namespace

// Of several launches on one machine the first to come listens.
Meeting::Meeting(MeetingOptions options)
    : options_(std::move(options)), hello_(hello_of(options_)) {
  if (options_.is_host == 0 || (options_.is_host < 0 && !is_own_address(options_.host))) {
    return;
  }
  try {
    listener_ = std::make_unique<PendingConnections>(listen_at(options_.host, options_.port));
  } catch (const Error&) {
    if (options_.is_host == 1 || errno != EADDRINUSE) {
      throw;
    }
  }
  if (listener_ && same_secret(hello_.secret, Secret{})) {
    Log().warning("any program that reaches port ", options_.port,
                  " of this machine may join as a node while nodes are awaited: give all of them "
                  "the same BLOOMERY_SECRET, `openssl rand -hex 16`");
  }
}

Meeting::~Meeting() = default;

void Meeting::gather(NodeStart& start) {
  if (!listens()) {
    return join_host(start);
  }
  guests_.clear();
  const Deadline end = seconds_from_now(options_.join_seconds);
  std::optional<Deadline> last_call;
  const auto nodes = [&] { return static_cast<int>(guests_.size()) + 1; };
  while (nodes() < options_.max_nodes && (!last_call || seconds_until(*last_call) > 0)) {
    check(nodes() >= options_.min_nodes || seconds_until(end) > 0, nodes(), " of at least ",
          options_.min_nodes, " nodes came to ", options_.host, " port ", options_.port, " within ",
          options_.join_seconds,
          " s: start the same command at every node, or give a smaller --nnodes MIN:MAX");
    std::vector<pollfd> waits;
    listener_->add_waits(waits);
    poll(waits.data(), waits.size(), 200);
    accept_guests();
    drop_those_who_left();
    if (nodes() < options_.min_nodes) {
      last_call.reset();
    } else if (!last_call) {
      last_call = seconds_from_now(options_.last_call_seconds);
    }
  }
  seat_guests(start);
}

void Meeting::accept_guests() {
  for (PendingConnections::Arrival& each : listener_->take()) {
    if (!same_secret(each.hello.secret, hello_.secret)) {
      Log().warning("a node at ", peer_address(each.socket), " has another BLOOMERY_SECRET");
      continue;
    }
    const std::string problem = each.hello.job != hello_.job
                                    ? "its --rdzv_id is another one: give all nodes the same"
                                : each.hello.build != hello_.build
                                    ? "its bloomery is another build: install the same at all nodes"
                                : each.hello.size < 1 ? "it has no ranks"
                                                      : "";
    set_blocking(each.socket, true);
    if (problem.empty() && static_cast<int>(guests_.size()) + 1 < options_.max_nodes) {
      guests_.push_back({std::move(each.socket), each.hello.size, {}});
      guests_.back().address = peer_address(guests_.back().socket);
    } else {
      send_all(each.socket,
               concat(kRefused, problem.empty() ? "enough nodes came before it" : problem, "\n"));
    }
  }
}

void Meeting::drop_those_who_left() {
  std::erase_if(guests_, [](const Guest& guest) {
    char byte = 0;
    return recv(guest.socket.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  });
}

// The ranks listen at another port than the nodes.
void Meeting::seat_guests(NodeStart& start) {
  start.node = 0;
  start.first_rank = 0;
  start.num_nodes = static_cast<int>(guests_.size()) + 1;
  start.world_size = options_.ranks;
  for (const Guest& guest : guests_) {
    start.world_size += guest.ranks;
  }
  int node = 1, first_rank = options_.ranks;
  const char* const secret = std::getenv("BLOOMERY_SECRET");
  for (const Guest& guest : guests_) {
    send_all(guest.socket,
             concat(node++, " ", start.num_nodes, " ", first_rank, " ", start.world_size, " ",
                    start.attempt, " ", start.port, " ", start.host, " ", secret, "\n"));
    first_rank += guest.ranks;
  }
}

void Meeting::join_host(NodeStart& start) {
  const Deadline end = seconds_from_now(options_.join_seconds);
  to_host_ = Socket();
  to_host_ = connect_to(options_.host, options_.port, end, "the node of --rdzv_endpoint");
  set_for_ranks(to_host_);
  send_all(to_host_, {reinterpret_cast<const char*>(&hello_), sizeof hello_});
  // The one that listens waits as long for the others, and then for more.
  const std::string line =
      read_line(to_host_, seconds_from_now(options_.join_seconds + options_.last_call_seconds));
  check(!line.starts_with(kRefused), "this node was refused at ", options_.host, " port ",
        options_.port, ": ", line.substr(std::min(line.size(), std::string(kRefused).size())));
  std::istringstream in(line);
  std::string secret;
  in >> start.node >> start.num_nodes >> start.first_rank >> start.world_size >> start.attempt >>
      start.port >> start.host >> secret;
  check(!in.fail(), "the node at ", options_.host, " port ", options_.port,
        " gave this one no place: it ended, has another BLOOMERY_SECRET, or is no bloomery launch");
  setenv("BLOOMERY_SECRET", secret.c_str(), 1);
}

void Meeting::forget_guests() { guests_.clear(); }

std::vector<ChildCommand> Meeting::attendants() const {
  std::vector<ChildCommand> all;
  for (const Guest& guest : guests_) {
    const int descriptor = guest.socket.descriptor();
    all.push_back({.name = concat("the node at ", guest.address),
                   .words = {own_program(), "launch", "--attend", std::to_string(descriptor)},
                   .own_terminal = true,
                   .takes_orders = true,
                   .keep_open = descriptor});
  }
  return all;
}

void Meeting::tell_end(const WatchEnd& end) {
  if (to_host_) {
    send_all(to_host_, concat(end.code, end.asked ? kAsked : "", "\n"));
  }
}

}  // namespace bloomery
