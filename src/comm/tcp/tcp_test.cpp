// What is particular to ranks that are processes: finding each other, deaths, disagreements.
#include "comm/tcp/tcp.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "comm/error_case.h"
#include "comm/tcp/connect_all.h"
#include "comm/tcp/tcp_case.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;

// What each rank's body throws.
std::vector<std::string> errors_of(int size,
                                   const std::function<void(int, Communicator&, Stream&)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  run_tcp_ranks(size, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device);
    errors[static_cast<std::size_t>(rank)] = error_of([&] { body(rank, *world, stream); });
  });
  return errors;
}

TEST(Tcp, DisagreementsAreErrorsOfAllWhoTakePart) {
  for (const std::string& error : errors_of(3, [](int rank, Communicator&world, Stream&stream) {
         const Tensor data = Tensor::zeros(stream, DType::fp32, {rank == 2 ? 8 : 7});
         world.all_reduce(data, Reduce::sum, stream);
         world.host().barrier("end");
       })) {
    EXPECT_TRUE(contains(error, "the ranks disagree: rank ")) << error;
    EXPECT_TRUE(contains(error, "calls all_reduce sum of 8 fp32")) << error;
  }
  for (const std::string& error : errors_of(2, [](int rank, Communicator&world, Stream&stream) {
         const Tensor data = Tensor::zeros(stream, DType::fp32, {4 + rank});
         const Transfer transfer[] = {
             {rank == 0 ? Transfer::Kind::send : Transfer::Kind::receive, data, 1 - rank}};
         world.exchange(transfer, stream);
         world.host().barrier("end");
       })) {
    EXPECT_TRUE(contains(error, "rank 0 sends 4 fp32, but rank 1 receives 5 fp32")) << error;
  }
  for (const std::string& error : errors_of(2, [](int rank, Communicator&world, Stream&stream) {
         const Tensor part = Tensor::zeros(stream, DType::fp32, {4});
         const Tensor whole = Tensor::zeros(stream, DType::fp32, {rank == 1 ? 9 : 8});
         world.all_gather(part, whole, stream);
       })) {
    EXPECT_TRUE(contains(error, "2 parts fp32[4] do not make a whole fp32[9]")) << error;
  }
}

TEST(Tcp, AWaitThatIsTooLongNamesTheCallAndTheRank) {
  std::string error;
  run_tcp_ranks(
      2,
      [&](int rank, std::unique_ptr<Communicator> world) {
        Device device({.num_threads = 1});
        Stream stream(device);
        const Tensor data = Tensor::zeros(stream, DType::fp32, {4});
        if (rank == 0) {
          error = error_of([&] { world->all_reduce(data, Reduce::sum, stream); });
        } else {
          error_of([&] { world->host().gather("never", {}); });
        }
      },
      0.3);
  EXPECT_TRUE(contains(error, "0.3 s in ")) << error;
}

TEST(Tcp, ARankThatHasLeftIsNotWaitedFor) {
  std::string error;
  const auto start = Clock::now();
  run_tcp_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
    if (rank == 0) {
      error = error_of([&] { world->host().barrier("the end"); });
    }
  });
  EXPECT_TRUE(contains(error, "in the end for rank(s) 1, which have left")) << error;
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST(Tcp, SaysWhoDidNotComeAndWhoWasNotReached) {
  const ControlOptions first{.rank = 0, .size = 3, .start_seconds = 0.3};
  const std::string missing = error_of([&] { ControlPlane control(first); });
  EXPECT_TRUE(contains(missing, "of 3 ranks these did not come to rank 0: 1, 2")) << missing;
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  listener = Socket();
  const ControlOptions second{.rank = 1, .size = 2, .port = port, .start_seconds = 0.3};
  const std::string refused = error_of([&] { ControlPlane control(second); });
  EXPECT_TRUE(
      contains(refused, "could not reach the first rank (this is rank 1 of 2) at 127.0.0.1"))
      << refused;
}

TEST(Tcp, RefusesRanksOfAnotherStartAndGoesOn) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  std::string refused;
  std::thread other([&] {
    const ControlOptions wrong{.rank = 1, .size = 3, .port = port};
    refused = error_of([&] { ControlPlane control(wrong); });
    Socket garbage = connect_to("127.0.0.1", port, seconds_from_now(5), "the test");
    send_all(garbage, std::string_view("GET / HTTP/1.1\r\n\r\n"));
    const ControlOptions right{.rank = 1, .size = 2, .port = port};
    ControlPlane control(right);
  });
  {
    ControlOptions first{.rank = 0, .size = 2, .port = port};
    first.listener = listener.release();
    ControlPlane control(first);
  }
  other.join();
  EXPECT_TRUE(contains(refused, "rank 1 was told of 3 ranks, and rank 0 of 2")) << refused;
}

std::string_view bytes_of(const Hello& hello) {
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

// What the first rank answers to this hello, until it closes the connection.
std::string answer_to(int port, std::string_view bytes) {
  const Socket socket = connect_to("127.0.0.1", port, seconds_from_now(5), "the test");
  send_all(socket, bytes);
  std::string answer;
  for (char byte = 0; receive_all(socket, {&byte, 1});) {
    answer += byte;
  }
  return answer;
}

bool is_refused(int port) {
  return !error_of([&] { connect_to("127.0.0.1", port, seconds_from_now(0.05), "it"); }).empty();
}

TEST(Tcp, StrangersNeitherJoinNorHinderAStart) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  const Secret secret = random_secret();
  const auto start = Clock::now();
  std::thread first([&] {
    ControlOptions options{.rank = 0, .size = 2, .port = port, .secret = secret, .build = 7};
    options.listener = listener.release();
    ControlPlane control(options);
    EXPECT_TRUE(is_refused(port)) << "nobody else is expected";
  });
  std::vector<Socket> strangers;
  for (int i = 0; i < 230; ++i) {
    strangers.push_back(connect_to("127.0.0.1", port, seconds_from_now(5), "the test"));
  }
  EXPECT_EQ(answer_to(port, std::string(1 << 20, 'x')), "");
  Hello hello{.rank = 1, .size = 2, .build = 7};
  EXPECT_TRUE(contains(answer_to(port, bytes_of(hello)), "does not have the secret of rank 0"));
  hello.secret = secret;
  hello.build = 8;
  EXPECT_TRUE(contains(answer_to(port, bytes_of(hello)),
                       "rank 1 runs build 0000000000000008 of bloomery, and rank 0 "
                       "0000000000000007: start the same"));
  hello = {.rank = 1, .size = 2, .build = 7, .job = 5, .secret = secret};
  EXPECT_TRUE(contains(answer_to(port, bytes_of(hello)), "belongs to another job"));
  {
    const ControlOptions second{.rank = 1, .size = 2, .port = port, .secret = secret, .build = 7};
    ControlPlane control(second);
  }
  first.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(4));
}

TEST(Tcp, AnotherProgramAtThePortIsNoRank) {
  const std::string empty_welcome(9, '\0');
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH_9.2 and so on"), "\1" + empty_welcome,
        empty_welcome.substr(0, 4) + "\1" + empty_welcome.substr(0, 4)}) {
    const Socket listener = listen_at("127.0.0.1", 0);
    const ControlOptions options{.rank = 1, .size = 2, .port = port_of(listener)};
    std::thread other([&] {
      const Socket socket = accept_from(listener);
      send_all(socket, text);
      char byte = 0;
      while (receive_all(socket, {&byte, 1})) {
      }
    });
    const std::string error = error_of([&] { ControlPlane control(options); });
    EXPECT_TRUE(contains(error, "another program answers at 127.0.0.1 port")) << error;
    other.join();
  }
}

// Idle connections go to all ports of the wire before the ranks' do.
class StrangersFirst final : public HostGroup {
 public:
  explicit StrangersFirst(HostGroup& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::vector<std::string> gather(const std::string& topic, std::string mine,
                                  double seconds) override {
    std::vector<std::string> all = inner_.gather(topic, std::move(mine), seconds);
    if (topic == "ports of the wire" && rank() == 0) {
      for (const std::string& port : all) {
        strangers_.push_back(
            connect_to("127.0.0.1", std::stoi(port), seconds_from_now(5), "the test"));
      }
    }
    inner_.barrier("strangers are there");
    return all;
  }
  void abort(const std::string&, bool) noexcept override {}

 private:
  HostGroup& inner_;
  std::vector<Socket> strangers_;
};

TEST(Tcp, StrangersDoNotHinderTheWire) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  const auto start = Clock::now();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      ControlOptions options{.rank = rank, .size = 3, .port = port};
      options.listener = rank == 0 ? listener.release() : -1;
      const auto control = std::make_shared<ControlPlane>(options);
      const auto host = make_tcp_host_group(control, "all", control->all_ranks());
      StrangersFirst group(*host);
      EXPECT_EQ(connect_all(*control, group).size(), 3);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
}

TEST(Tcp, TheFirstRankDoesNotWaitForeverForOneThatHangsAtItsEnd) {
  Socket listener = listen_at("127.0.0.1", 0);
  ControlOptions options{.rank = 0, .size = 2, .port = port_of(listener), .timeout_seconds = 0.3};
  std::unique_ptr<ControlPlane> hangs;
  std::thread second([&hangs, mine = options]() mutable {
    mine.rank = 1;
    hangs = std::make_unique<ControlPlane>(mine);
  });
  options.listener = listener.release();
  auto first = std::make_unique<ControlPlane>(options);
  second.join();
  const std::shared_ptr<World> world = first->world();
  const auto start = Clock::now();
  first.reset();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
  const std::string text = "rank(s) 1 did not end within 0.3 s after rank 0";
  EXPECT_TRUE(contains(world->failure().text, text)) << world->failure().text;
  const Deadline told = seconds_from_now(2);
  while (!hangs->world()->failed() && seconds_until(told) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(contains(hangs->world()->failure().text, text)) << "it is told, so that it ends";
}

// A process per rank; `victim` kills itself in the middle. Exit codes: 0 none, 1 what was expected.
int run_process(int rank, int port, int victim, int listener, int report) {
  try {
    ControlOptions options{.rank = rank, .size = 3, .port = port};
    options.listener = rank == 0 ? listener : -1;
    const std::unique_ptr<Communicator> world =
        make_tcp_communicator(std::make_shared<ControlPlane>(options));
    Device device({.num_threads = 1});
    Stream stream(device);
    const Tensor data = Tensor::zeros(stream, DType::fp32, {100'000});
    for (int i = 0;; ++i) {
      if (rank == victim && i == 20) {
        raise(SIGKILL);
      }
      world->all_reduce(data, Reduce::sum, stream);
    }
  } catch (const RankFailure& failure) {
    const std::string text = concat(failure.what(), "\n");
    return write(report, text.data(), text.size()) > 0 ? 10 + failure.rank : 0;
  } catch (const std::exception& error) {
    return 2;
  }
}

class TcpDeath : public ::testing::TestWithParam<int> {};

TEST_P(TcpDeath, IsToldToAllOthersWithinSeconds) {
  const int victim = GetParam();
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const auto start = Clock::now();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      _exit(run_process(rank, port, victim, listener.descriptor(), report[1]));
    }
    processes.push_back(process);
  }
  listener = Socket();
  close(report[1]);
  for (int rank = 0; rank < 3; ++rank) {
    int status = 0;
    waitpid(processes[static_cast<std::size_t>(rank)], &status, 0);
    if (rank == victim) {
      EXPECT_TRUE(WIFSIGNALED(status));
    } else {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 10 + victim) << "rank " << rank;
    }
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(15));
  char text[4096] = "";
  EXPECT_GT(read(report[0], text, sizeof text - 1), 0);
  EXPECT_TRUE(contains(text, concat("rank ", victim, " failed: its process ended"))) << text;
  close(report[0]);
}

INSTANTIATE_TEST_SUITE_P(OfRank, TcpDeath, ::testing::Values(0, 2));

}  // namespace
}  // namespace bloomery
