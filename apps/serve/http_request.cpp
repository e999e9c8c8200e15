#include "apps/serve/http_request.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of an answer

struct ServerName {
  std::string host, port;
};

// "localhost:5000", "[::1]:5000"
ServerName server_name(const std::string& server) {
  const std::size_t bracket = server.find(']');
  const std::size_t colon = server.find(':', bracket == server.npos ? 0 : bracket);
  ServerName name{server.substr(0, colon),
                  colon == server.npos ? std::string("80") : server.substr(colon + 1)};
  if (name.host.starts_with('[') && name.host.ends_with(']')) {
    name.host = name.host.substr(1, name.host.size() - 2);
  }
  std::uint16_t number = 0;
  const char* const end = name.port.data() + name.port.size();
  const auto read = std::from_chars(name.port.data(), end, number);
  check(!name.host.empty() && read.ec == std::errc() && read.ptr == end && number > 0, "'", server,
        "' is no address of a server: give HOST:PORT, as localhost:5000");
  return name;
}

class Connection {
 public:
  explicit Connection(const std::string& server) : server_(server) {
    const ServerName name = server_name(server);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int failure = getaddrinfo(name.host.c_str(), name.port.c_str(), &hints, &found);
    check(failure == 0, server, ": ", gai_strerror(failure), "; give HOST:PORT, as localhost:5000");
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      socket_ = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
      if (socket_ >= 0 && connect(socket_, each->ai_addr, each->ai_addrlen) == 0) return;
      if (socket_ >= 0) close(socket_);
    }
    socket_ = -1;
    throw Error(concat("no server answers at ", server, " (", std::strerror(errno),
                       "): start one with `bloomery serve`, or name another address"));
  }
  ~Connection() {
    if (socket_ >= 0) close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      check(sent > 0 || errno == EINTR, server_, " closed the connection: ", std::strerror(errno));
      text.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
    }
  }
  // Until the server closes the connection.
  std::string receive_all() const {
    std::string text;
    char buffer[1 << 16];
    for (;;) {
      const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
      if (count == 0) return text;
      check(count > 0 || errno == EINTR, server_, " closed the connection: ", std::strerror(errno));
      text.append(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
      check(text.size() <= kMostBytes, server_, " sends an answer without an end");
    }
  }

 private:
  std::string server_;
  int socket_ = -1;
};

}  // namespace

void check_server_address(const std::string& server) { server_name(server); }

HttpAnswer put_json(const std::string& server, const std::string& path, const std::string& json,
                    const std::string& api_key) {
  const Connection connection(server);
  // An answer by HTTP/1.0 comes in one piece, and the connection ends with it.
  connection.send_all(concat("PUT ", path, " HTTP/1.0\r\nHost: ", server,
                             "\r\nContent-Type: application/json\r\nContent-Length: ", json.size(),
                             api_key.empty() ? "" : "\r\nAuthorization: Bearer " + api_key,
                             "\r\n\r\n", json));
  const std::string text = connection.receive_all();
  HttpAnswer answer;
  const std::size_t space = text.find(' '), end = text.find("\r\n\r\n");
  const bool is_http = text.starts_with("HTTP/") && space != text.npos && end != text.npos;
  check(is_http && std::from_chars(text.data() + space + 1, text.data() + end, answer.status).ec ==
                       std::errc(),
        server, " does not answer with HTTP; is it another kind of server?");
  answer.body = text.substr(end + 4);
  return answer;
}

}  // namespace bloomery
