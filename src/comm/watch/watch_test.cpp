// What is said of ranks that do not come: recorded calls, reports, and the watch over them.
#include "comm/watch/watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "comm/error_case.h"
#include "comm/mesh.h"
#include "comm/tcp/tcp.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

using State = CallRecord::State;

// What each rank's recorder has after `body`.
std::vector<RankStatus> recorded(int size, StreamMode mode,
                                 const std::function<void(Communicator&, Stream&)>& body) {
  std::vector<RankStatus> statuses(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device, mode);
    body(*world, stream);
    stream.synchronize();
    statuses[static_cast<std::size_t>(rank)] = recorder_of(*world)->status();
  });
  return statuses;
}

TEST(FlightRecorder, HasTheLastCallsWithWhereTheyWereMade) {
  for (const StreamMode mode : {StreamMode::direct, StreamMode::queued}) {
    for (const RankStatus& status : recorded(2, mode, [](Communicator&world, Stream&stream) {
           FlightRecorder& recorder = *recorder_of(world);
           const Tensor data = Tensor::zeros(stream, DType::bf16, {6});
           recorder.set_iteration(12);
           recorder.set_work("backward", 3, 1);
           world.all_reduce(data, Reduce::sum, stream);
           recorder.set_work("optimizer");
           world.broadcast(data, 1, stream);
           const Transfer transfer[] = {
               {world.rank() == 0 ? Transfer::Kind::send : Transfer::Kind::receive, data,
                1 - world.rank()}};
           world.exchange(transfer, stream);
           stream.synchronize();
         })) {
      ASSERT_EQ(status.calls.size(), 3);
      EXPECT_EQ(status.calls[0].text, "all_reduce sum of 6 bf16");
      EXPECT_EQ(status.calls[0].group, "all ranks");
      EXPECT_EQ(status.calls[0].members, (std::vector<int>{0, 1}));
      EXPECT_EQ(status.calls[0].number, 0);
      EXPECT_EQ(status.calls[0].position, "iteration 12, backward of micro-batch 3, chunk 1");
      EXPECT_EQ(status.calls[1].text, "broadcast from rank 1 of 6 bf16");
      EXPECT_EQ(status.calls[1].position, "iteration 12, optimizer");
      EXPECT_EQ(status.calls[2].text, status.rank == 0 ? "exchange of 6 bf16 to rank 1"
                                                       : "exchange of 6 bf16 from rank 0");
      for (const CallRecord& call : status.calls) {
        EXPECT_EQ(call.state, State::done);
      }
      EXPECT_EQ(status.waiting(), nullptr);
    }
  }
}

TEST(FlightRecorder, TellsTheNewest64) {
  for (const RankStatus& status :
       recorded(2, StreamMode::direct, [](Communicator&world, Stream&stream) {
         const Tensor data = Tensor::zeros(stream, DType::fp32, {1});
         for (int i = 0; i < 2000; ++i) {
           world.all_reduce(data, Reduce::sum, stream);
         }
       })) {
    ASSERT_EQ(status.calls.size(), FlightRecorder::kTold);
    EXPECT_EQ(status.calls.front().number, 2000 - 64);
    EXPECT_EQ(status.calls.back().number, 1999);
  }
}

TEST(FlightRecorder, GroupsOfAMeshHaveNamesAndTheSameNumbersOnTheirMembers) {
  std::vector<RankStatus> statuses(4);
  run_ranks(4, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device);
    Mesh mesh({.tensor = 2, .data = 2}, std::move(world));
    const Tensor data = Tensor::zeros(stream, DType::fp32, {4});
    mesh.axis(Axis::tensor).all_reduce(data, Reduce::sum, stream);
    mesh.reductions(kReplicaAxes).all_reduce(data, Reduce::sum, stream);
    statuses[static_cast<std::size_t>(rank)] = recorder_of(mesh.world())->status(2);
  });
  EXPECT_EQ(statuses[1].calls[0].group, "ranks along tensor");
  EXPECT_EQ(statuses[1].calls[0].members, (std::vector<int>{0, 1}));
  EXPECT_EQ(statuses[1].calls[1].group, "sums of gradients along data");
  EXPECT_EQ(statuses[1].calls[1].members, (std::vector<int>{1, 3}));
  EXPECT_EQ(statuses[1].calls[1].group_id, statuses[3].calls[1].group_id);
  EXPECT_NE(statuses[1].calls[0].group_id, statuses[1].calls[1].group_id);
}

TEST(RankStatus, ComesBackFromItsBytes) {
  const RankStatus status =
      recorded(2, StreamMode::direct, [](Communicator& world, Stream& stream) {
        world.all_reduce(Tensor::zeros(stream, DType::fp32, {3}), Reduce::max, stream);
      })[1];
  const RankStatus back = RankStatus::from(status.bytes());
  EXPECT_EQ(back.bytes(), status.bytes());
  EXPECT_EQ(back.calls.at(0).text, "all_reduce max of 3 fp32");
  const std::string bytes = status.bytes();
  EXPECT_THROW(RankStatus::from(std::string_view(bytes).substr(0, bytes.size() - 1)), Error);
}

struct Told {
  std::string failure;
  WatchReport report;
};

// Rank `sleeper` of three does not come to its second sum until the others have given up.
Told hang(StreamMode mode, int sleeper) {
  Told told;
  std::atomic<int> given_up = 0;
  EXPECT_NE(error_of([&] {
              run_ranks(3,
                        [&](int rank, std::unique_ptr<Communicator> world) {
                          Device device({.num_threads = 1});
                          Stream stream(device, mode);
                          const Tensor data = Tensor::zeros(stream, DType::fp32, {5});
                          world->all_reduce(data, Reduce::sum, stream);
                          stream.synchronize();
                          FlightRecorder& recorder = *recorder_of(*world);
                          recorder.set_iteration(7);
                          recorder.set_work("backward", 2);
                          if (rank == sleeper) {
                            while (given_up < 2) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(10));
                            }
                            return;
                          }
                          const std::string error = error_of([&] {
                            world->all_reduce(data, Reduce::sum, stream);
                            stream.synchronize();
                          });
                          ++given_up;
                          throw Error(error);
                        },
                        {.timeout_seconds = 0.3,
                         .when_silent = [&](const std::string& failure, const WatchReport& report) {
                           told = {failure, report};
                         }});
            }),
            "");
  return told;
}

TEST(Watch, AHangOfThreadsNamesTheRankTheStepAndTheCall) {
  for (const StreamMode mode : {StreamMode::direct, StreamMode::queued}) {
    const auto [failure, report] = hang(mode, 1);
    EXPECT_TRUE(contains(failure, "0.3 s in all_reduce for rank(s) 1, which did not come"))
        << failure;
    EXPECT_TRUE(
        contains(report.summary,
                 ") did not come; others wait for it in all_reduce sum of 5 fp32 (call 1 of "
                 "all ranks, ranks 0-2), iteration 7, backward of micro-batch 2, chunk 0"))
        << report.summary;
    EXPECT_TRUE(contains(report.summary,
                         "  ranks 0, 2: iteration 7, backward of micro-batch 2, chunk 0: in "
                         "all_reduce sum of 5 fp32 (call 1"))
        << report.summary;
    EXPECT_TRUE(contains(report.summary,
                         "  rank 1: iteration 7, backward of micro-batch 2, chunk 0: "
                         "in no call, after all_reduce"))
        << report.summary;
    EXPECT_TRUE(contains(report.details, "waiting")) << report.details;
  }
}

TEST(Watch, RanksThatNeverEndAreAbandoned) {
  EXPECT_EXIT(run_ranks(2,
                        [](int rank, std::unique_ptr<Communicator> world) {
                          while (rank == 1) {
                            std::this_thread::sleep_for(std::chrono::seconds(1));
                          }
                          world->host().barrier("end");
                        },
                        {.timeout_seconds = 0.2,
                         .when_stuck =
                             [](const std::string& failure) {
                               std::fputs(failure.c_str(), stderr);
                               std::_Exit(1);
                             },
                         .leave_seconds = 0.2}),
              ::testing::ExitedWithCode(1), "in end for rank\\(s\\) 1");
}

TEST(WatchReport, IsStoredOrSaysWhyNot) {
  const TemporaryFolder folder;
  const WatchReport report{"summary\n", "details\n"};
  const std::string line = store_report("failure", report, folder.path() / "run");
  const std::string start = "the last calls of each rank: ";
  ASSERT_TRUE(line.starts_with(start)) << line;
  EXPECT_EQ(read_file(line.substr(start.size())), "failure\nsummary\ndetails\n");
  folder.file("file", "");
  EXPECT_TRUE(
      contains(store_report("failure", report, folder.path() / "file"), "could not be written: "));
}

// Three processes' worth of ranks over TCP. Rank `silent` stops telling and coming.
std::vector<std::string> tcp_reports(int silent) {
  Socket listener = listen_at("127.0.0.1", 0);
  const int port = port_of(listener);
  std::vector<std::string> summaries(3);
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ControlOptions options{.rank = rank, .size = 3, .port = port};
      options.timeout_seconds = 0.5;
      options.listener = rank == 0 ? listener.release() : -1;
      const auto control = std::make_shared<ControlPlane>(options);
      auto watch = std::make_unique<ProcessWatch>(control);
      Device device({.num_threads = 1});
      Stream stream(device);
      const std::unique_ptr<Communicator> world = watch->record(make_tcp_communicator(control));
      FlightRecorder& recorder = *recorder_of(*world);
      recorder.set_iteration(3);
      const Tensor data = Tensor::zeros(stream, DType::fp32, {5});
      world->all_reduce(data, Reduce::sum, stream);
      world->host().barrier("ready");
      if (rank == silent) {
        while (ended < 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return;
      }
      recorder.set_work("forward", 0);
      error_of([&] { world->all_gather(data, Tensor::zeros(stream, DType::fp32, {15}), stream); });
      if (const auto report = watch->report()) {
        summaries[static_cast<std::size_t>(rank)] = report->summary;
      }
      ++ended;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return summaries;
}

TEST(Watch, AHangOfProcessesIsToldByTheFirstRank) {
  const std::vector<std::string> summaries = tcp_reports(2);
  EXPECT_TRUE(contains(summaries[0], "rank 2 (")) << summaries[0];
  EXPECT_TRUE(contains(summaries[0],
                       "others wait for it in all_gather of 5 fp32 (call 1 of all ranks, ranks "
                       "0-2), iteration 3, forward of micro-batch 0, chunk 0"))
      << summaries[0];
  EXPECT_TRUE(contains(summaries[0], "  ranks 0, 1: iteration 3, forward")) << summaries[0];
  EXPECT_EQ(summaries[1], "");
}

}  // namespace
}  // namespace bloomery
