// A small HTTP server: whole requests in, whole or growing answers out. It knows nothing of models.
// Limits hold for clients that are slow, greedy or broken; one that leaves is noticed while its
// answer is being made.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

struct HttpLimits {
  std::size_t body_bytes = std::size_t{4} << 20;
  std::size_t all_bodies_bytes = std::size_t{1} << 30;  // of requests that are held
  std::size_t header_bytes = std::size_t{32} << 10;
  unsigned connections = 256;
  std::chrono::milliseconds header_time{10'000}, body_time{30'000};
  unsigned idle_seconds = 60;  // of a connection between requests, and of a client that reads none
};

struct HttpRequest {
  std::string method, path, body;
  std::string authorization, host, origin;  // headers; empty: not there
  std::string client;                       // its address
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// An answer that grows.
class HttpBody {
 public:
  enum class State { more, wait, end };
  virtual ~HttpBody() = default;
  // Appends what there is, on the server's thread. `wait`: nothing now, HttpExchange::wake() says
  // when to ask again.
  virtual State read(std::string& out) = 0;
};

// A request and its answer. It may be answered later and from any thread, once.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  const HttpRequest& request() const { return request_; }
  bool left() const { return left_; }  // nobody reads an answer any more
  virtual void respond(HttpResponse response) = 0;
  virtual void stream(std::string type, std::shared_ptr<HttpBody> body) = 0;
  virtual void wake() = 0;

 protected:
  HttpRequest request_;
  std::atomic<bool> left_ = false;
};

class HttpServer {
 public:
  // Called on the server's thread, so that it must not take long.
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;

  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  // No new connections.
  virtual void close() = 0;
  // Waits until all answers were sent, or the time is over; then ends every connection.
  virtual void stop(std::chrono::milliseconds patience) = 0;
};

// An Error where nobody can listen at the port now, such as where another server does: for who
// wants to know it before a long start.
void require_free_port(const std::string& address, int port);

// Listens at once. `address` is a name or number, port 0 any that is free. An Error says what is in
// the way, such as another server there.
std::unique_ptr<HttpServer> make_http_server(const std::string& address, int port,
                                             const HttpLimits& limits, HttpServer::Handler handler);

}  // namespace bloomery
