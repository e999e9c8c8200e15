// What is particular to ranks that are processes: finding each other, deaths, disagreements.
#include "comm/tcp/tcp.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "comm/error_case.h"
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
