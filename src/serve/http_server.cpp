#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/connection_watch.h"
#include "serve/http.h"
#include "serve/http_library.h"

namespace bloomery {
namespace {

using Clock = ConnectionWatch::Clock;

class Exchange;

// What an exchange needs of its server.
struct Front {
  HttpLibrary library;
  HttpLimits limits;
  HttpServer::Handler handler;
  ConnectionWatch watch;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<Exchange*> open;
  // In memory: a queue may hold exchanges whose clients left, and longer than the server lives.
  const std::shared_ptr<std::atomic<std::size_t>> body_bytes =
      std::make_shared<std::atomic<std::size_t>>(0);

  Front(const HttpLimits& l, HttpServer::Handler h) : limits(l), handler(std::move(h)) {}
};

std::string numeric_address(const sockaddr* address) {
  char text[NI_MAXHOST] = "";
  const socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

class Exchange final : public HttpExchange, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Front& front, MHD_Connection* connection, const char* url, const char* method)
      : front_(front), connection_(connection), body_bytes_(front.body_bytes) {
    const auto header = [&](const char* name) -> std::string {
      const char* const value =
          front.library.lookup_connection_value(connection, MHD_HEADER_KIND, name);
      return value != nullptr ? value : "";
    };
    request_.method = method;
    request_.path = url;
    request_.authorization = header("Authorization");
    request_.host = header("Host");
    request_.origin = header("Origin");
    const auto* const info =
        front.library.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    request_.client = info != nullptr ? numeric_address(info->client_addr) : "";
    const std::lock_guard lock(front.mutex);
    front.open.insert(this);
  }
  ~Exchange() override { *body_bytes_ -= request_.body.size(); }

  // On the server's thread. What is too much is read, in the time there is for a body, and
  // forgotten: most clients listen only when they have said all.
  void append(const char* data, std::size_t size) {
    too_large_ = too_large_ || size > front_.limits.body_bytes - request_.body.size();
    too_many_ = too_many_ || *body_bytes_ + size > front_.limits.all_bodies_bytes;
    if (!too_large_ && !too_many_) {
      request_.body.append(data, size);
      *body_bytes_ += size;
    }
  }
  MHD_Result refuse_size() {
    const ApiError error =
        too_large_
            ? ApiError(413,
                       concat("the request has more than ", front_.limits.body_bytes, " bytes"))
            : ApiError(503, "the requests in flight have too many bytes; try again in a moment");
    respond({.status = error.status, .body = error.json(), .headers = {{"Connection", "close"}}});
    return queue();
  }
  // All of the request is here; called again after the connection was suspended.
  MHD_Result complete() {
    if (too_large_ || too_many_) {
      return refuse_size();
    }
    if (!handled_) {
      handled_ = true;
      front_.watch.expect(connection_, std::nullopt);
      front_.handler(shared_from_this());
    }
    const std::lock_guard lock(mutex_);
    if (left_) {
      return MHD_NO;
    }
    if (!answered_) {
      suspend();
      return MHD_YES;
    }
    return queue();
  }
  // The connection is done with this exchange. The body, which may hold the exchange, ends here.
  void finished() {
    std::shared_ptr<HttpBody> body;
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
      suspended_ = false;
      body = std::move(body_);
    }
    front_.watch.expect(connection_, Clock::now() + front_.limits.header_time +
                                         std::chrono::seconds(front_.limits.idle_seconds));
    const std::lock_guard lock(front_.mutex);
    front_.open.erase(this);
    front_.changed.notify_all();
  }

  void respond(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    answered_ = true;
    resume();
  }
  void stream(std::string type, std::shared_ptr<HttpBody> body) override {
    const std::lock_guard lock(mutex_);
    if (left_) {
      return;  // finished() may have come already, and nobody else lets the body go
    }
    response_.type = std::move(type);
    body_ = std::move(body);
    answered_ = true;
    resume();
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    resume();
  }
  // Somebody found that the client is gone.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    resume();
  }

 private:
  void suspend() {
    suspended_ = true;
    front_.library.suspend_connection(connection_);
    front_.watch.guard(connection_, [self = weak_from_this()] {
      if (const auto exchange = self.lock()) {
        exchange->leave();
      }
    });
  }
  void resume() {
    if (suspended_) {
      suspended_ = false;
      front_.watch.unguard(connection_);
      front_.library.resume_connection(connection_);
    }
  }

  MHD_Result queue() {
    const HttpLibrary& mhd = front_.library;
    MHD_Response* const response =
        body_ ? mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_callback,
                                                  new std::shared_ptr(shared_from_this()),
                                                  free_callback)
              : mhd.create_response_from_buffer(response_.body.size(), response_.body.data(),
                                                MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) {
      return MHD_NO;
    }
    mhd.add_response_header(response, "Content-Type", response_.type.c_str());
    mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
    mhd.add_response_header(response, "Cache-Control", "no-store");
    for (const auto& [name, value] : response_.headers) {
      mhd.add_response_header(response, name.c_str(), value.c_str());
    }
    const MHD_Result result =
        mhd.queue_response(connection_, static_cast<unsigned>(response_.status), response);
    mhd.destroy_response(response);
    return result;
  }

  // The library is C: an exception of a body must end the connection, not the program.
  static ssize_t read_callback(void* self, std::uint64_t, char* to, std::size_t most) {
    try {
      return (*static_cast<std::shared_ptr<Exchange>*>(self))->read(to, most);
    } catch (const std::exception&) {
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
  }
  static void free_callback(void* self) { delete static_cast<std::shared_ptr<Exchange>*>(self); }

  ssize_t read(char* to, std::size_t most) {
    const std::lock_guard lock(mutex_);
    if (left_) {
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (sent_ == pending_.size()) {
      pending_.clear();
      sent_ = 0;
      HttpBody::State state = HttpBody::State::more;
      while (pending_.empty() && state == HttpBody::State::more) {
        state = body_->read(pending_);
      }
      if (pending_.empty() && state == HttpBody::State::end) {
        return MHD_CONTENT_READER_END_OF_STREAM;
      }
      if (pending_.empty()) {
        suspend();
        return 0;
      }
    }
    const std::size_t count = std::min(most, pending_.size() - sent_);
    std::memcpy(to, pending_.data() + sent_, count);
    sent_ += count;
    return static_cast<ssize_t>(count);
  }

  Front& front_;
  MHD_Connection* connection_;
  const std::shared_ptr<std::atomic<std::size_t>> body_bytes_;  // of all exchanges
  bool too_large_ = false, too_many_ = false, handled_ = false;

  std::mutex mutex_;
  bool suspended_ = false, answered_ = false;
  HttpResponse response_;
  std::shared_ptr<HttpBody> body_;
  std::string pending_;  // of the body
  std::size_t sent_ = 0;
};

MHD_Result on_request(void* data, MHD_Connection* connection, const char* url, const char* method,
                      const char*, const char* upload, std::size_t* size, void** place) {
  auto& front = *static_cast<Front*>(data);
  try {
    if (*place == nullptr) {
      auto* const exchange =
          new std::shared_ptr<Exchange>(std::make_shared<Exchange>(front, connection, url, method));
      *place = exchange;
      front.watch.expect(connection, Clock::now() + front.limits.body_time);
      return MHD_YES;
    }
    Exchange& exchange = **static_cast<std::shared_ptr<Exchange>*>(*place);
    if (*size > 0) {
      exchange.append(upload, *size);
      *size = 0;
      return MHD_YES;
    }
    return exchange.complete();
  } catch (const std::exception&) {
    return MHD_NO;  // no memory: the connection ends
  }
}

void on_completed(void*, MHD_Connection*, void** place, MHD_RequestTerminationCode) {
  auto* const exchange = static_cast<std::shared_ptr<Exchange>*>(*place);
  if (exchange != nullptr) {
    (*exchange)->finished();
    delete exchange;
    *place = nullptr;
  }
}

void on_connection(void* data, MHD_Connection* connection, void**,
                   MHD_ConnectionNotificationCode code) {
  auto& front = *static_cast<Front*>(data);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* const info =
        front.library.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) {
      front.watch.opened(connection, info->connect_fd, Clock::now() + front.limits.header_time);
    }
  } else {
    front.watch.closed(connection);
  }
}

void say_nothing(void*, const char*, va_list) {}

struct Address {
  sockaddr_storage storage{};
  bool ipv6 = false;

  Address(const std::string& name, int port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    const int status = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
    check(status == 0, "--host ", name, " is no address of this machine: ", gai_strerror(status));
    std::memcpy(&storage, found->ai_addr, found->ai_addrlen);
    ipv6 = found->ai_family == AF_INET6;
    freeaddrinfo(found);
  }
};

void require_listening(bool listening, const std::string& name, int port) {
  const int reason = errno;
  check(listening, "cannot listen at ", name, " port ", port, ": ", std::strerror(reason),
        reason == EADDRINUSE ? "; another program has the port: give another --port" : "");
}

constexpr std::chrono::seconds kLastWait{5};

class Server final : public HttpServer {
 public:
  Server(const std::string& name, int port, const HttpLimits& limits, Handler handler)
      : front_(limits, std::move(handler)) {
    Address address(name, port);
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG | (address.ipv6 ? unsigned{MHD_USE_IPv6} : 0u);
    daemon_ = front_.library.start_daemon(
        flags, 0, nullptr, nullptr, on_request, &front_,
        // The logger first, so that it holds for the others.
        MHD_OPTION_EXTERNAL_LOGGER, say_nothing, nullptr, MHD_OPTION_SOCK_ADDR, &address.storage,
        MHD_OPTION_CONNECTION_LIMIT, limits.connections, MHD_OPTION_CONNECTION_TIMEOUT,
        limits.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.header_bytes,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, nullptr, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, &front_, MHD_OPTION_END);
    require_listening(daemon_ != nullptr, name, port);
  }
  ~Server() override { stop(std::chrono::milliseconds(0)); }

  int port() const override {
    const auto* const info = front_.library.get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
    return info != nullptr ? info->port : 0;
  }
  void close() override {
    if (!closed_) {
      closed_ = true;
      const MHD_socket socket = front_.library.quiesce_daemon(daemon_);
      if (socket >= 0) {
        ::close(socket);
      }
    }
  }
  void stop(std::chrono::milliseconds patience) override {
    if (daemon_ == nullptr) {
      return;
    }
    close();
    {
      std::unique_lock lock(front_.mutex);
      const auto done = [&] { return front_.open.empty(); };
      front_.changed.wait_for(lock, patience, done);
      for (Exchange* const exchange : front_.open) {
        exchange->leave();  // the library cannot end while connections are suspended
      }
      front_.changed.wait_for(lock, kLastWait, done);
    }
    front_.library.stop_daemon(daemon_);
    daemon_ = nullptr;
  }

 private:
  Front front_;
  MHD_Daemon* daemon_ = nullptr;
  bool closed_ = false;
};

}  // namespace

void require_free_port(const std::string& name, int port) {
  const Address address(name, port);
  const int probe = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require_listening(probe >= 0, name, port);
  const int on = 1;  // as the library: connections of an earlier server that linger are no obstacle
  setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto size =
      static_cast<socklen_t>(address.ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  const bool free = bind(probe, reinterpret_cast<const sockaddr*>(&address.storage), size) == 0 &&
                    listen(probe, 1) == 0;
  const int reason = errno;
  ::close(probe);
  errno = reason;
  require_listening(free, name, port);
}

std::unique_ptr<HttpServer> make_http_server(const std::string& address, int port,
                                             const HttpLimits& limits,
                                             HttpServer::Handler handler) {
  return std::make_unique<Server>(address, port, limits, std::move(handler));
}

}  // namespace bloomery
