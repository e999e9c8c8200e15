// What is particular to ranks that are threads: failing together, disagreements, timeouts, and
// several groups on several streams at once.
#include "comm/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/error_case.h"
namespace bloomery {
namespace {

// What each rank's own call threw when all ranks run `body`.
std::vector<std::string> errors_on_ranks(
    int size, StreamMode mode, const ThreadOptions& options,
    const std::function<void(int, Communicator&, Stream&)>& body) {
  std::vector<std::string> errors(size);
  run_ranks(
      size,
      [&](int rank, std::unique_ptr<Communicator> world) {
        Device device({.num_threads = 1});
        Stream stream(device, mode);
        errors[rank] = error_of([&] {
          body(rank, *world, stream);
          stream.synchronize();
        });
      },
      options);
  return errors;
}

class Disagreement : public ::testing::TestWithParam<StreamMode> {
 protected:
  void expect_on_all(const std::function<void(int, Communicator&, Stream&)>& body,
                     const std::string& part) {
    for (const std::string& error : errors_on_ranks(3, GetParam(), {.timeout_seconds = 60}, body)) {
      EXPECT_TRUE(contains(error, part)) << error;
    }
  }
};

TEST_P(Disagreement, OfSizes) {
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor data = Tensor::zeros(stream, DType::fp32, {rank == 2 ? 8 : 7});
        world.all_reduce(data, Reduce::sum, stream);
        stream.synchronize();
      },
      "rank 0 calls all_reduce sum of 7 fp32, rank 2 calls all_reduce sum of 8 fp32");
}

TEST_P(Disagreement, OfDtypesReductionsAndRoots) {
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const DType dtype = rank == 1 ? DType::bf16 : DType::fp32;
        world.all_reduce(Tensor::zeros(stream, dtype, {4}), Reduce::sum, stream);
        stream.synchronize();
      },
      "rank 1 calls all_reduce sum of 4 bf16");
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor data = Tensor::zeros(stream, DType::fp32, {4});
        world.all_reduce(data, rank == 1 ? Reduce::max : Reduce::sum, stream);
        stream.synchronize();
      },
      "rank 1 calls all_reduce max");
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        world.broadcast(Tensor::zeros(stream, DType::fp32, {4}), rank == 1 ? 1 : 0, stream);
        stream.synchronize();
      },
      "rank 1 calls broadcast from rank 1");
}

TEST_P(Disagreement, OfCalls) {
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor data = Tensor::zeros(stream, DType::fp32, {4});
        if (rank == 2) {
          world.broadcast(data, 0, stream);
        } else {
          world.all_reduce(data, Reduce::sum, stream);
        }
        stream.synchronize();
      },
      "rank 2 calls broadcast from rank 0 of 4 fp32");
}

TEST_P(Disagreement, OfOneRanksOwnArguments) {
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor part = Tensor::zeros(stream, DType::fp32, {4});
        const Tensor whole = Tensor::zeros(stream, DType::fp32, {rank == 1 ? 13 : 12});
        world.all_gather(part, whole, stream);
        stream.synchronize();
      },
      "rank 1: all_gather: 3 parts fp32[4] do not make a whole fp32[13]");
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor whole = Tensor::zeros(stream, DType::fp32, {12});
        const int place = rank == 1 ? 1 : rank * 4;
        world.reduce_scatter(whole, whole.slice(place, place + 4), Reduce::sum, stream);
        stream.synchronize();
      },
      "rank 1: reduce_scatter: the part overlaps the whole outside this rank's place");
  expect_on_all(
      [](int, Communicator& world, Stream& stream) {
        world.all_reduce(Tensor::zeros(stream, DType::uint8, {4}), Reduce::sum, stream);
        stream.synchronize();
      },
      "uint8 cannot be reduced");
}

TEST_P(Disagreement, OfAllToAllCounts) {
  expect_on_all(
      [](int rank, Communicator& world, Stream& stream) {
        const Tensor out = Tensor::zeros(stream, DType::fp32, {3});
        const Counts counts{
            {1, 1, 1},
            rank == 1 ? std::vector<std::int64_t>{1, 2, 1} : std::vector<std::int64_t>{1, 1, 1}};
        const Tensor in = Tensor::zeros(stream, DType::fp32, {rank == 1 ? 4 : 3});
        world.all_to_all(out, in, counts, stream);
        stream.synchronize();
      },
      "all_to_all: rank 1 sends 1 rows to rank 1, which expects 2");
}

TEST_P(Disagreement, OfMessages) {
  const auto errors = errors_on_ranks(
      3, GetParam(), {.timeout_seconds = 60}, [](int rank, Communicator& world, Stream& stream) {
        const Tensor data = Tensor::zeros(stream, DType::fp32, {rank == 0 ? 5 : 6});
        if (rank < 2) {
          const Transfer transfer[] = {
              {rank == 0 ? Transfer::Kind::send : Transfer::Kind::receive, data, 1 - rank}};
          world.exchange(transfer, stream);
          stream.synchronize();
        }
      });
  const std::string expected = "exchange: rank 0 sends fp32[5], but rank 1 receives fp32[6]";
  EXPECT_EQ(errors[0], expected);
  EXPECT_EQ(errors[1], expected);
  EXPECT_EQ(errors[2], "");
}

// After a disagreement the group goes on.
TEST_P(Disagreement, LeavesTheGroupUsable) {
  run_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device, GetParam());
    const Tensor data = Tensor::from_host<float>(stream, std::vector<float>(4, 1.0f), {4});
    EXPECT_THROW(
        {
          world->all_reduce(data.slice(0, 3 + rank), Reduce::sum, stream);
          stream.synchronize();
        },
        Error);
    world->all_reduce(data, Reduce::sum, stream);
    EXPECT_EQ(data.to_host<float>(stream), std::vector<float>(4, 2.0f));
  });
}

INSTANTIATE_TEST_SUITE_P(All, Disagreement,
                         ::testing::Values(StreamMode::direct, StreamMode::queued),
                         [](const auto& info) {
                           return info.param == StreamMode::direct ? "direct" : "queued";
                         });

TEST(RunRanks, RethrowsTheFirstAndTellsTheOthers) {
  std::vector<std::string> told(4);
  const auto body = [&](int rank, std::unique_ptr<Communicator> world) {
    check(rank != 2, "disk full");
    told[rank] = error_of([&] { world->host().barrier("test"); });
    throw Error(told[rank]);
  };
  EXPECT_EQ(error_of([&] { run_ranks(4, body); }), "disk full");
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(told[rank], "rank 2 failed: disk full");
  }
}

TEST(RunRanks, AFailureReachesSplitGroupsAndExchanges) {
  const auto body = [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device);
    const auto pair = world->split(rank / 2, rank);
    const Tensor data = Tensor::zeros(stream, DType::fp32, {1000});
    check(rank != 3, "bad luck");
    if (rank == 2) {
      pair->all_reduce(data, Reduce::sum, stream);
    } else if (rank == 1) {
      const Transfer receive[] = {{Transfer::Kind::receive, data, 3}};
      world->exchange(receive, stream);
    } else {
      const Transfer send[] = {{Transfer::Kind::send, data, 3}};
      world->exchange(send, stream);
    }
    ADD_FAILURE() << "rank " << rank << " was not woken";
  };
  EXPECT_EQ(error_of([&] { run_ranks(4, body); }), "bad luck");
}

// The failing rank has a call waiting in its queued stream, which its unwinding must end.
TEST(RunRanks, AnExceptionEndsTheQueuedCallsOfItsRank) {
  std::atomic<bool> told = false;
  const auto body = [&](int rank, std::unique_ptr<Communicator> world) {
    const auto other = world->split(0, rank);
    Device device({.num_threads = 1});
    Stream stream(device, StreamMode::queued);
    const Tensor data = Tensor::zeros(stream, DType::fp32, {10});
    if (rank == 0) {
      other->all_reduce(data, Reduce::sum, stream);  // nobody else comes
      throw Error("no more");
    }
    told = contains(error_of([&] { world->host().barrier("test"); }), "rank 0 failed: ");
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of([&] { run_ranks(2, body, {.timeout_seconds = 60}); }), "no more");
  EXPECT_TRUE(told);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(RunRanks, AbortGivesTheReason) {
  const auto errors = errors_on_ranks(2, StreamMode::queued, {.timeout_seconds = 60},
                                      [](int rank, Communicator& world, Stream& stream) {
                                        if (rank == 0) {
                                          world.host().abort("operator said so");
                                        } else {
                                          const Tensor data =
                                              Tensor::zeros(stream, DType::fp32, {10});
                                          world.all_reduce(data, Reduce::sum, stream);
                                          stream.synchronize();
                                        }
                                      });
  EXPECT_EQ(errors[1], "rank 0 failed: operator said so");
}

TEST(Timeout, NamesTheCallAndWhoIsMissing) {
  const auto errors = errors_on_ranks(4, StreamMode::direct, {.timeout_seconds = 0.2},
                                      [](int rank, Communicator& world, Stream& stream) {
                                        const Tensor data =
                                            Tensor::zeros(stream, DType::fp32, {10});
                                        if (rank == 0 || rank == 2) {
                                          world.all_reduce(data, Reduce::sum, stream);
                                        }
                                      });
  for (const int rank : {0, 2}) {
    EXPECT_TRUE(contains(errors[rank], "waited 0.2 s in all_reduce for rank(s) 1, 3"))
        << errors[rank];
  }
}

TEST(Timeout, NamesTheMissingMessage) {
  const auto wait = [](Transfer::Kind kind) {
    return errors_on_ranks(2, StreamMode::direct, {.timeout_seconds = 0.1},
                           [=](int rank, Communicator& world, Stream& stream) {
                             const Tensor data = Tensor::zeros(stream, DType::fp32, {10});
                             const Transfer transfer[] = {{kind, data, 1}};
                             if (rank == 0) {
                               world.exchange(transfer, stream);
                             }
                           });
  };
  EXPECT_EQ(wait(Transfer::Kind::receive)[0],
            "rank 0 waited 0.1 s in exchange for message 0 from rank 1, which did not send it");
  EXPECT_EQ(wait(Transfer::Kind::send)[0],
            "rank 0 waited 0.1 s in exchange for rank 1 to receive message 0");
}

// Three groups, each on a queued stream of its own, and the same group on two streams: ranks reach
// the streams in different orders and at different times, and still everybody meets.
TEST(Stress, SeveralGroupsOnSeveralStreams) {
  constexpr int kRounds = 60, kSize = 4;
  run_ranks(kSize, [](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 2});
    Stream compute(device), first(device, StreamMode::queued), second(device, StreamMode::queued);
    const auto pairs = world->split(rank / 2, rank);
    const auto halves = world->split(rank % 2, rank);
    const Tensor a = Tensor::from_host<float>(first, std::vector<float>(3001, 1.0f), {3001});
    const Tensor b = Tensor::from_host<float>(second, std::vector<float>(500, 1.0f), {500});
    const Tensor c = Tensor::from_host<float>(compute, std::vector<float>(70000, 1.0f), {70000});
    for (int round = 0; round < kRounds; ++round) {
      const auto on_first = [&] { pairs->all_reduce(a, Reduce::max, first); };
      const auto on_second = [&] { halves->all_reduce(b, Reduce::max, second); };
      if (rank % 2 == 0) {
        on_first();
        on_second();
      } else {
        on_second();
        on_first();
      }
      world->all_reduce(a, Reduce::max, first);
      world->all_reduce(b, Reduce::max, second);
      device.pool().for_ranges(c.numel(), 1000, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          static_cast<float*>(c.data())[i] += 1.0f;
        }
      });
      if (round % 16 == rank) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    world->all_reduce(c, Reduce::sum, compute);
    const auto all_equal = [](const std::vector<float>& values, float expected) {
      return std::all_of(values.begin(), values.end(), [=](float x) { return x == expected; });
    };
    EXPECT_TRUE(all_equal(a.to_host<float>(first), 1.0f));
    EXPECT_TRUE(all_equal(b.to_host<float>(second), 1.0f));
    EXPECT_TRUE(all_equal(c.to_host<float>(compute), kSize * (kRounds + 1.0f)));
  });
}

// A pipeline's traffic: activations one way and gradients the other, on a queued stream, many at
// once.
TEST(Stress, MessagesOfAPipeline) {
  constexpr int kMessages = 50;
  run_ranks(3, [](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream forward(device, StreamMode::queued), backward(device, StreamMode::queued);
    const Tensor down = Tensor::zeros(forward, DType::int32, {kMessages, 10});
    const Tensor up = Tensor::zeros(backward, DType::int32, {kMessages, 10});
    for (int i = 0; i < kMessages; ++i) {
      const Tensor here = down.slice(i, i + 1), back = up.slice(i, i + 1);
      if (rank > 0) {
        const Transfer receive[] = {{Transfer::Kind::receive, here, rank - 1}};
        world->exchange(receive, forward);
      } else {
        forward.fill(here.data(), static_cast<unsigned char>(i), here.bytes());
      }
      if (rank < 2) {
        const Transfer both[] = {{Transfer::Kind::send, here, rank + 1}};
        world->exchange(both, forward);
        const Transfer receive[] = {{Transfer::Kind::receive, back, rank + 1}};
        world->exchange(receive, backward);
      } else {
        backward.fill(back.data(), static_cast<unsigned char>(i + 100), back.bytes());
      }
      if (rank > 0) {
        const Transfer send[] = {{Transfer::Kind::send, back, rank - 1}};
        world->exchange(send, backward);
      }
    }
    const auto down_values = down.to_host<std::int32_t>(forward);
    const auto up_values = up.to_host<std::int32_t>(backward);
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(down_values[i * 10], i * 0x01010101);
      EXPECT_EQ(static_cast<std::uint32_t>(up_values[i * 10 + 9]), (i + 100) * 0x01010101u);
    }
  });
}

}  // namespace
}  // namespace bloomery
