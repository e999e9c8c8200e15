#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/common/command_case.h"
#include "apps/common/typed_lines_case.h"

namespace bloomery {
namespace {

// Gives each connection the next of some answers, and keeps what was asked.
class FixedServer {
 public:
  explicit FixedServer(std::vector<std::string> answers)
      : socket_(socket(AF_INET, SOCK_STREAM, 0)), answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 4), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (const std::string& answer : answers_) serve(answer);
    });
  }
  ~FixedServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  FixedServer(const FixedServer&) = delete;
  FixedServer& operator=(const FixedServer&) = delete;
  std::string name() const { return "127.0.0.1:" + std::to_string(port_); }
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  void serve(const std::string& answer) {
    const int client = accept(socket_, nullptr, nullptr);
    if (client < 0) return;
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == request.npos || !request.ends_with('}')) {
      const ssize_t count = recv(client, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      request.append(buffer, static_cast<std::size_t>(count));
    }
    requests_.push_back(request);
    EXPECT_EQ(send(client, answer.data(), answer.size(), MSG_NOSIGNAL), std::ssize(answer));
    close(client);
  }

  int socket_, port_ = 0;
  std::vector<std::string> answers_, requests_;
  std::thread thread_;
};

TEST(TextGenerationCli, AsksAndPrintsAsMegatrons) {
  const FixedServer server({"HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"text\": [\"abc def\"]}",
                            "HTTP/1.1 400 Bad\r\n\r\n{\"message\": \"too long\"}",
                            "HTTP/1.0 200 OK\r\n\r\n\"prompts is empty\""});
  const TypedLines typed(std::cin, "abc\n5\nde\nfour\nde\n7\nx\n1\n");
  const Outcome outcome = run_command({"tools/text_generation_cli.py", server.name()});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.out,
            "Megatron Response: \nabc def\n"
            "'four' is no number of tokens: give one above 0\n"
            "Error 400: too long\nError 200: prompts is empty\n");
  ASSERT_EQ(server.requests().size(), 3u);
  const std::string& first = server.requests()[0];
  EXPECT_TRUE(first.starts_with("PUT /api HTTP/1.0\r\n")) << first;
  const auto json = nlohmann::json::parse(first.substr(first.find("\r\n\r\n") + 4));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"prompts": ["abc"], "tokens_to_generate": 5})"));
}

TEST(TextGenerationCli, ServersThatAreNotThereAreCodeTwo) {
  std::string gone;
  {
    const FixedServer server({});
    gone = server.name();
  }
  const TypedLines typed(std::cin, "abc\n5\n");
  const Outcome outcome = run_command({"text_generation_cli", gone});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.says("no server answers at " + gone)) << outcome.errors;
  for (const char* const server : {"", "localhost:99999", "http://", ":5000", "localhost:"}) {
    const Outcome wrong = run_command({"text_generation_cli", server});
    EXPECT_EQ(wrong.code, 2) << server;
    EXPECT_TRUE(wrong.says("is no address of a server")) << wrong.errors;
  }
  const TypedLines again(std::cin, "abc\n5\n");
  const FixedServer other({"SSH-2.0-OpenSSH\r\n"});
  const Outcome ssh = run_command({"text_generation_cli", other.name()});
  EXPECT_EQ(ssh.code, 2);
  EXPECT_TRUE(ssh.says("does not answer with HTTP")) << ssh.errors;
}

}  // namespace
}  // namespace bloomery
