#include "serve/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace bloomery {
namespace {

using namespace std::chrono_literals;

class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void say(const std::string& text) { send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Until the other side closes, or the text contains `end`.
  std::string hear(const std::string& end = "\n\n\n\n") {
    std::string all;
    char bytes[4096];
    for (ssize_t count; all.find(end) == std::string::npos &&
                        (count = recv(socket_, bytes, sizeof bytes, 0)) > 0;) {
      all.append(bytes, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  int socket_;
};

const std::string kGet = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

template <class Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  return condition();
}

std::unique_ptr<HttpServer> serve(HttpServer::Handler handler, const HttpLimits& limits = {}) {
  return make_http_server("127.0.0.1", 0, limits, std::move(handler));
}

TEST(HttpServer, RequestsAndAnswers) {
  HttpRequest seen;
  const auto server = serve([&](const std::shared_ptr<HttpExchange>& exchange) {
    seen = exchange->request();
    exchange->respond(
        {.status = 418, .type = "text/plain", .body = "tea", .headers = {{"X", "y"}}});
  });
  Client client(server->port());
  client.say(
      "POST /a/b?c=d HTTP/1.1\r\nHost: me:1\r\nAuthorization: Bearer k\r\nOrigin: http://o\r\n"
      "Connection: close\r\nContent-Length: 5\r\n\r\nhello");
  const std::string answer = client.hear();
  EXPECT_EQ(answer.rfind("HTTP/1.1 418", 0), 0u) << answer;
  EXPECT_NE(answer.find("X: y\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\ntea"));
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/a/b");
  EXPECT_EQ(seen.body, "hello");
  EXPECT_EQ(seen.host, "me:1");
  EXPECT_EQ(seen.authorization, "Bearer k");
  EXPECT_EQ(seen.origin, "http://o");
  EXPECT_EQ(seen.client, "127.0.0.1");
}

TEST(HttpServer, AnswersMayComeLaterAndInPieces) {
  struct Growing : HttpBody {
    State read(std::string& out) override {
      const int now = ready;
      for (; given < now; ++given) {
        out += std::to_string(given) + ";";
      }
      return given == 5 ? (ended ? State::end : (ended = true, State::more)) : State::wait;
    }
    std::atomic<int> ready = 0;
    int given = 0;
    bool ended = false;
  };
  std::vector<std::thread> threads;
  const auto server = serve([&](const std::shared_ptr<HttpExchange>& exchange) {
    threads.emplace_back([exchange] {
      std::this_thread::sleep_for(20ms);
      const auto body = std::make_shared<Growing>();
      exchange->stream("text/plain", body);
      for (int i = 1; i <= 5; ++i) {
        std::this_thread::sleep_for(10ms);
        body->ready = i;
        exchange->wake();
      }
    });
  });
  Client client(server->port());
  client.say(kGet);
  const std::string answer = client.hear();
  threads[0].join();
  EXPECT_NE(answer.find("chunked"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(answer.find(std::to_string(i) + ";"), std::string::npos) << answer;
  }
}

// A body holds its exchange, which holds the body: the server lets both go, whether the client
// heard all of it, left in the middle, or left before there was any.
TEST(HttpServer, AnswersThatAreOverAreForgotten) {
  struct Body : HttpBody {
    Body(std::shared_ptr<HttpExchange> e, bool whole) : exchange(std::move(e)), ends(whole) {}
    State read(std::string& out) override {
      out += given ? "" : "text";
      return std::exchange(given, true) ? (ends ? State::end : State::wait) : State::more;
    }
    std::shared_ptr<HttpExchange> exchange;
    bool ends, given = false;
  };
  std::mutex mutex;
  std::vector<std::weak_ptr<HttpExchange>> exchanges;
  std::shared_ptr<HttpExchange> late;
  const auto server = serve([&](const std::shared_ptr<HttpExchange>& exchange) {
    const std::lock_guard lock(mutex);
    exchanges.push_back(exchange);
    if (exchanges.size() == 3) {
      late = exchange;
    } else {
      exchange->stream("text/plain", std::make_shared<Body>(exchange, exchanges.size() == 1));
    }
  });
  const auto forgotten = [&](std::size_t came, std::size_t count) {
    const std::lock_guard lock(mutex);
    return exchanges.size() == came &&
           std::count_if(exchanges.begin(), exchanges.end(), [](const auto& exchange) {
             return exchange.expired();
           }) == static_cast<std::ptrdiff_t>(count);
  };
  {
    Client hears(server->port());
    hears.say(kGet);
    EXPECT_NE(hears.hear().find("text"), std::string::npos);
  }
  {
    Client leaves(server->port());
    leaves.say(kGet);
    EXPECT_NE(leaves.hear("text").find("text"), std::string::npos);
  }
  {
    Client early(server->port());
    early.say(kGet);
    ASSERT_TRUE(soon([&] { return forgotten(3, 2); }));
  }
  ASSERT_TRUE(soon([&] { return late->left(); }));
  late->stream("text/plain", std::make_shared<Body>(late, true));
  late.reset();
  EXPECT_TRUE(soon([&] { return forgotten(3, 3); }));
}

// Its connection ends, and others are answered.
TEST(HttpServer, ABodyThatThrowsEndsItsConnectionAlone) {
  struct Body : HttpBody {
    State read(std::string& out) override {
      if (std::exchange(given, true)) {
        throw std::runtime_error("no more of it can be made");
      }
      out += "text";
      return State::more;
    }
    bool given = false;
  };
  const auto server = serve([](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->stream("text/plain", std::make_shared<Body>());
  });
  for (int i = 0; i < 2; ++i) {
    Client client(server->port());
    client.say(kGet);
    EXPECT_NE(client.hear().find("text"), std::string::npos);
  }
}

// The library itself would not notice it, since the connection is suspended.
TEST(HttpServer, ClientsThatLeaveAreNoticed) {
  std::shared_ptr<HttpExchange> held;
  std::atomic<bool> arrived = false;
  const auto server = serve([&](const std::shared_ptr<HttpExchange>& exchange) {
    held = exchange;
    arrived = true;
  });
  {
    Client client(server->port());
    client.say(kGet);
    ASSERT_TRUE(soon([&] { return arrived.load(); }));
    EXPECT_FALSE(held->left());
  }
  EXPECT_TRUE(soon([&] { return held->left(); }));
  held->respond({.body = "too late"});
}

TEST(HttpServer, SlowClientsAreEndedAndOthersServed) {
  const auto server = serve(
      [](const std::shared_ptr<HttpExchange>& exchange) { exchange->respond({.body = "ok"}); },
      {.header_time = 300ms, .body_time = 300ms});
  Client slow_header(server->port()), slow_body(server->port());
  slow_header.say("GET /");
  slow_body.say("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nab");
  Client quick(server->port());
  quick.say(kGet);
  EXPECT_TRUE(quick.hear().ends_with("ok"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(slow_header.hear().find("ok"), std::string::npos);
  EXPECT_EQ(slow_body.hear().find("ok"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(HttpServer, LargeRequestsAreRefused) {
  std::atomic<int> count = 0;
  const auto server =
      serve([&](const std::shared_ptr<HttpExchange>&) { ++count; }, {.body_bytes = 1000});
  Client client(server->port());
  client.say("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n" +
             std::string(1001, 'x'));
  EXPECT_EQ(client.hear().rfind("HTTP/1.1 413", 0), 0u);
  EXPECT_EQ(count, 0);
}

TEST(HttpServer, BodiesInFlightAreBounded) {
  std::shared_ptr<HttpExchange> held;
  std::atomic<bool> arrived = false;
  const auto server = serve(
      [&](const std::shared_ptr<HttpExchange>& exchange) {
        if (!arrived) {
          held = exchange;
          arrived = true;
        } else {
          exchange->respond({.body = "ok"});
        }
      },
      {.body_bytes = 1000, .all_bodies_bytes = 1500});
  const std::string post =
      "POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
      std::string(1000, 'x');
  const auto answer = [&] {
    Client client(server->port());
    client.say(post);
    return client.hear();
  };
  Client first(server->port());
  first.say(post);
  ASSERT_TRUE(soon([&] { return arrived.load(); }));
  EXPECT_EQ(answer().rfind("HTTP/1.1 503", 0), 0u);
  held->respond({.body = "first"});
  EXPECT_TRUE(first.hear().ends_with("first"));
  held.reset();
  EXPECT_TRUE(soon([&] { return answer().ends_with("ok"); }));
}

// Requests wait for who reads them, though their clients left.
TEST(HttpServer, BodiesOfClientsThatLeftAreBounded) {
  std::shared_ptr<HttpExchange> held;
  std::atomic<bool> arrived = false;
  const auto server = serve(
      [&](const std::shared_ptr<HttpExchange>& exchange) {
        if (!arrived) {
          held = exchange;
          arrived = true;
        } else {
          exchange->respond({.body = "ok"});
        }
      },
      {.body_bytes = 1000, .all_bodies_bytes = 1500});
  const auto post = [&](const std::function<void(Client&)>& then) {
    Client client(server->port());
    client.say(
        "POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
        std::string(1000, 'x'));
    then(client);
  };
  const auto answer = [&] {
    std::string text;
    post([&](Client& client) { text = client.hear(); });
    return text;
  };
  post([&](Client&) { ASSERT_TRUE(soon([&] { return arrived.load(); })); });
  ASSERT_TRUE(soon([&] { return held->left(); }));
  std::this_thread::sleep_for(100ms);  // the server's thread is done with it
  EXPECT_EQ(answer().rfind("HTTP/1.1 503", 0), 0u);
  held.reset();
  EXPECT_TRUE(soon([&] { return answer().ends_with("ok"); }));
}

TEST(HttpServer, EndsWithRequestsThatNobodyAnswers) {
  std::atomic<bool> arrived = false;
  auto server = serve([&](const std::shared_ptr<HttpExchange>&) { arrived = true; });
  Client client(server->port());
  client.say(kGet);
  ASSERT_TRUE(soon([&] { return arrived.load(); }));
  server->stop(20ms);
  EXPECT_EQ(client.hear(), "");
}

TEST(HttpServer, SaysWhenItCannotListen) {
  const auto server = serve([](const std::shared_ptr<HttpExchange>&) {});
  EXPECT_THROW(make_http_server("no.such.host.invalid", 0, {}, {}), std::runtime_error);
  for (const bool before : {true, false}) {
    try {
      before ? require_free_port("127.0.0.1", server->port())
             : static_cast<void>(make_http_server("127.0.0.1", server->port(), {}, {}));
      ADD_FAILURE() << "two servers listen at one port";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("already in use"), std::string::npos)
          << error.what();
    }
  }
}

// Its connections linger (TIME_WAIT), which is no obstacle.
TEST(HttpServer, AnotherOneFollowsAtTheSamePort) {
  const auto answer = [](const std::shared_ptr<HttpExchange>& exchange) { exchange->respond({}); };
  auto server = serve(answer);
  const int port = server->port();
  Client client(port);
  client.say(kGet);
  client.hear();
  server.reset();
  EXPECT_NO_THROW(require_free_port("127.0.0.1", port));
  EXPECT_NO_THROW(make_http_server("127.0.0.1", port, {}, answer));
}

}  // namespace
}  // namespace bloomery
