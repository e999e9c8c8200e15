// Every collective on every implementation: one suite, which a new implementation must pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "comm/nccl/nccl.h"
#include "comm/start/join.h"
#include "comm/tcp/tcp_case.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

// Joined: the processes that a launcher started together, over BLOOMERY_TEST_TRANSPORT (tcp, mpi or
// nccl). Then nothing else is tested:
//   mpirun -np 4 bloomery_comm_test --gtest_filter='*Conformance*'
enum class Kind { self, threads, tcp, nccl, joined };
struct Setup {
  Kind kind;
  int size;
  DeviceKind device;
  StreamMode mode;
};

std::string setup_name(const ::testing::TestParamInfo<Setup>& info) {
  const Setup& s = info.param;
  constexpr const char* kNames[] = {"self", "threads", "tcp", "nccl", "joined"};
  return concat(kNames[static_cast<int>(s.kind)], s.size,
                s.device == DeviceKind::cuda ? "_cuda" : "_cpu",
                s.mode == StreamMode::queued ? "_queued" : "_direct");
}

const StartFacts& facts() {
  static const StartFacts facts = start_facts(environment_variables());
  return facts;
}

Transport joined_transport() {
  const char* const name = std::getenv("BLOOMERY_TEST_TRANSPORT");
  const std::string text = name == nullptr ? "mpi" : name;
  return text == "tcp" ? Transport::tcp : text == "nccl" ? Transport::nccl : Transport::mpi;
}

// Ranks of tests share a GPU, which NCCL allows when it is asked to.
bool nccl_shares_gpus() {
  return num_cuda_devices() > 0 && std::getenv("NCCL_MULTI_RANK_GPU_ENABLE") != nullptr;
}

std::vector<Setup> joined_setups() {
  if (joined_transport() == Transport::nccl) {
    return {{Kind::joined, facts().size, DeviceKind::cuda, StreamMode::direct}};
  }
  std::vector<Setup> all = {{Kind::joined, facts().size, DeviceKind::cpu, StreamMode::direct},
                            {Kind::joined, facts().size, DeviceKind::cpu, StreamMode::queued}};
  if (num_cuda_devices() > 0) {
    all.push_back({Kind::joined, facts().size, DeviceKind::cuda, StreamMode::direct});
  }
  return all;
}

std::vector<Setup> setups() {
  if (facts().size > 1) {
    return joined_setups();
  }
  std::vector<Setup> all;
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    for (const StreamMode mode : {StreamMode::direct, StreamMode::queued}) {
      const bool cuda = device == DeviceKind::cuda;
      if (cuda && (mode == StreamMode::queued || num_cuda_devices() == 0)) {
        continue;  // CUDA streams have no modes
      }
      all.push_back({Kind::self, 1, device, mode});
      for (const int size : {1, 2, 3, 4}) {
        all.push_back({Kind::threads, size, device, mode});
        all.push_back({Kind::tcp, size, device, mode});
      }
    }
  }
  for (const int size : {2, 3, 4, 8}) {
    if (nccl_shares_gpus()) {
      all.push_back({Kind::nccl, size, DeviceKind::cuda, StreamMode::direct});
    }
  }
  return all;
}

// One for all tests of the process.
Communicator& joined_world() {
  static const JoinedWorld joined = join_world(facts());
  static const std::unique_ptr<Communicator> world = make_world(
      joined, joined_transport(),
      {.kind = joined_transport() == Transport::nccl ? DeviceKind::cuda : DeviceKind::cpu}, 60);
  return *world;
}

// One rank's view of a test.
struct Rank {
  Communicator& comm;
  Stream& stream;
  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }
};

constexpr std::int64_t kCounts[] = {0, 1, 7, 1000, 65537};

// Small integers, so that sums are exact in every dtype.
int number(int rank, std::int64_t i) { return static_cast<int>((rank * 7 + i * 3) % 17) - 8; }

template <class T>
T as(int value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
Tensor numbers(Stream& stream, int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = as<T>(number(rank, first + i));
  }
  return Tensor::from_host(stream, values, {count});
}

template <class T, class Expected>
void expect_numbers(Stream& stream, const Tensor& tensor, Expected expected, const char* what) {
  const std::vector<T> values = tensor.to_host<T>(stream);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    wrong += static_cast<double>(static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(
                 values[i])) != expected(i);
  }
  EXPECT_EQ(wrong, 0) << what << " of " << tensor.dtype() << tensor.shape();
}

double reduced(int size, std::int64_t i, Reduce reduce) {
  double result = number(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double x = number(rank, i);
    result = reduce == Reduce::sum ? result + x : std::max(result, x);
  }
  return result;
}

class Conformance : public ::testing::TestWithParam<Setup> {
 protected:
  void on_ranks(const std::function<void(Rank)>& body) {
    const auto one = [&](Communicator& comm) {
      Device device({.kind = GetParam().device, .num_threads = 2, .poison = true});
      Stream stream(device, GetParam().mode);
      body({comm, stream});
      stream.synchronize();
      comm.host().barrier("end of the case");
    };
    if (GetParam().kind == Kind::self) {
      const auto self = make_self_communicator();
      one(*self);
      return;
    }
    const auto run_one = [&](int, std::unique_ptr<Communicator> world) {
      one(GetParam().kind == Kind::nccl
              ? *(world = over_nccl(std::move(world), {.kind = DeviceKind::cuda}))
              : *world);
    };
    if (GetParam().kind == Kind::joined) {
      one(joined_world());
    } else if (GetParam().kind == Kind::tcp) {
      run_tcp_ranks(GetParam().size, run_one);
    } else {
      run_ranks(GetParam().size, run_one, {.timeout_seconds = 60});
    }
  }

  // Calls body(TypeTag, count, rank) for all dtypes and counts on all ranks.
  template <class Body>
  void on_ranks_all_types(const Body& body) {
    on_ranks([&](Rank rank) {
      for (const std::int64_t count : kCounts) {
        body(TypeTag<float>{}, count, rank);
        body(TypeTag<bfloat16>{}, count, rank);
        body(TypeTag<float16>{}, count, rank);
        body(TypeTag<double>{}, count, rank);
        body(TypeTag<std::int32_t>{}, count, rank);
        body(TypeTag<std::int64_t>{}, count, rank);
      }
    });
  }
};

TEST_P(Conformance, AllReduce) {
  on_ranks_all_types([](auto tag, std::int64_t count, Rank r) {
    using T = typename decltype(tag)::type;
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
      const Tensor data = numbers<T>(r.stream, r.rank(), count);
      r.comm.all_reduce(data, reduce, r.stream);
      expect_numbers<T>(
          r.stream, data, [&](std::int64_t i) { return reduced(r.size(), i, reduce); },
          "all_reduce");
    }
  });
}

// Several rounds where a transport cuts into pieces what is large.
TEST_P(Conformance, LargeTensors) {
  on_ranks([](Rank r) {
    constexpr std::int64_t kCount = 3'000'001;
    const Tensor data = numbers<float>(r.stream, r.rank(), kCount);
    const int next = (r.rank() + 1) % r.size(), before = (r.rank() + r.size() - 1) % r.size();
    const Tensor in = Tensor::empty(r.stream, DType::fp32, {kCount});
    const Transfer ring[] = {{Transfer::Kind::send, data, next},
                             {Transfer::Kind::receive, in, before}};
    r.comm.exchange(ring, r.stream);
    expect_numbers<float>(
        r.stream, in, [&](std::int64_t i) { return number(before, i); }, "exchange");
    r.comm.broadcast(in, r.size() - 1, r.stream);
    const int sent = (2 * r.size() - 2) % r.size();  // what the last one had received
    expect_numbers<float>(
        r.stream, in, [&](std::int64_t i) { return number(sent, i); }, "broadcast");
    r.comm.all_reduce(data, Reduce::sum, r.stream);
    expect_numbers<float>(
        r.stream, data, [&](std::int64_t i) { return reduced(r.size(), i, Reduce::sum); },
        "all_reduce");
  });
}

TEST_P(Conformance, AllReduceOfAnUnalignedRange) {
  on_ranks([](Rank r) {
    const Tensor data = numbers<bfloat16>(r.stream, r.rank(), 1001);
    r.comm.all_reduce(data.slice(1, 1000), Reduce::sum, r.stream);
    expect_numbers<bfloat16>(
        r.stream, data,
        [&](std::int64_t i) {
          return i == 0 || i == 1000 ? number(r.rank(), i) : reduced(r.size(), i, Reduce::sum);
        },
        "all_reduce");
  });
}

TEST_P(Conformance, AllGather) {
  on_ranks_all_types([](auto tag, std::int64_t count, Rank r) {
    using T = typename decltype(tag)::type;
    const auto expected = [&](std::int64_t i) {
      return number(static_cast<int>(i / count), i % count);
    };
    const Tensor part = numbers<T>(r.stream, r.rank(), count);
    const Tensor whole = Tensor::empty(r.stream, part.dtype(), {count * r.size()});
    r.comm.all_gather(part, whole, r.stream);
    expect_numbers<T>(r.stream, whole, expected, "all_gather");

    const Tensor target = Tensor::empty(r.stream, part.dtype(), {count * r.size()});
    const Tensor own = target.slice(count * r.rank(), count * (r.rank() + 1));
    r.stream.copy(own.data(), part.data(), part.bytes());
    r.comm.all_gather(own, target, r.stream);
    expect_numbers<T>(r.stream, target, expected, "all_gather in place");
  });
}

TEST_P(Conformance, ReduceScatter) {
  on_ranks_all_types([](auto tag, std::int64_t count, Rank r) {
    using T = typename decltype(tag)::type;
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
      const auto expected = [&](std::int64_t i) {
        return reduced(r.size(), count * r.rank() + i, reduce);
      };
      const Tensor whole = numbers<T>(r.stream, r.rank(), count * r.size());
      const Tensor part = Tensor::empty(r.stream, whole.dtype(), {count});
      r.comm.reduce_scatter(whole, part, reduce, r.stream);
      expect_numbers<T>(r.stream, part, expected, "reduce_scatter");
      expect_numbers<T>(
          r.stream, whole, [&](std::int64_t i) { return number(r.rank(), i); },
          "input of reduce_scatter");

      const Tensor own = whole.slice(count * r.rank(), count * (r.rank() + 1));
      r.comm.reduce_scatter(whole, own, reduce, r.stream);
      expect_numbers<T>(r.stream, own, expected, "reduce_scatter in place");
    }
  });
}

TEST_P(Conformance, Broadcast) {
  on_ranks_all_types([](auto tag, std::int64_t count, Rank r) {
    using T = typename decltype(tag)::type;
    for (int root = 0; root < r.size(); ++root) {
      const Tensor data = numbers<T>(r.stream, r.rank(), count);
      r.comm.broadcast(data, root, r.stream);
      expect_numbers<T>(
          r.stream, data, [&](std::int64_t i) { return number(root, i); }, "broadcast");
    }
  });
}

// Rank r sends (r + 2 p) % 5 * unit rows of three elements to rank p.
TEST_P(Conformance, AllToAll) {
  on_ranks([](Rank r) {
    for (const std::int64_t unit : {0, 1, 331}) {
      const auto rows = [&](int from, int to) { return (from + 2 * to) % 5 * unit; };
      Counts counts;
      std::int64_t out_rows = 0, in_rows = 0;
      std::vector<float> expected;
      for (int peer = 0; peer < r.size(); ++peer) {
        std::int64_t first = 0;  // where the rows for this rank start in the peer's buffer
        for (int to = 0; to < r.rank(); ++to) {
          first += rows(peer, to);
        }
        for (std::int64_t i = first * 3; i < (first + rows(peer, r.rank())) * 3; ++i) {
          expected.push_back(static_cast<float>(number(peer, i)));
        }
        counts.out.push_back(rows(r.rank(), peer));
        counts.in.push_back(rows(peer, r.rank()));
        out_rows += counts.out.back();
        in_rows += counts.in.back();
      }
      const Tensor out = numbers<float>(r.stream, r.rank(), out_rows * 3).reshape({out_rows, 3});
      const Tensor in = Tensor::empty(r.stream, DType::fp32, {in_rows, 3});
      r.comm.all_to_all(out, in, counts, r.stream);
      EXPECT_EQ(in.to_host<float>(r.stream), expected);
    }
  });
}

// A ring: each rank sends two messages to the next and receives two from the one before, in one
// exchange, so nobody may wait for the others' receives before posting its own.
TEST_P(Conformance, ExchangeInARing) {
  on_ranks([](Rank r) {
    const int next = (r.rank() + 1) % r.size(), before = (r.rank() + r.size() - 1) % r.size();
    for (const std::int64_t count : kCounts) {
      const Tensor first = numbers<float>(r.stream, r.rank(), count);
      const Tensor second = numbers<float>(r.stream, r.rank(), count + 1, 5);
      const Tensor in_first = Tensor::empty(r.stream, DType::fp32, {count});
      const Tensor in_second = Tensor::empty(r.stream, DType::fp32, {count + 1});
      const Transfer transfers[] = {{Transfer::Kind::receive, in_first, before},
                                    {Transfer::Kind::send, first, next},
                                    {Transfer::Kind::send, second, next},
                                    {Transfer::Kind::receive, in_second, before}};
      r.comm.exchange(transfers, r.stream);
      r.stream.fill(first.data(), 0, first.bytes());  // may be reused at once
      expect_numbers<float>(
          r.stream, in_first, [&](std::int64_t i) { return number(before, i); }, "exchange");
      expect_numbers<float>(
          r.stream, in_second, [&](std::int64_t i) { return number(before, 5 + i); }, "exchange");
    }
  });
}

// Messages pass between two ranks while the others are elsewhere.
TEST_P(Conformance, ExchangeBetweenTwo) {
  on_ranks([](Rank r) {
    const Tensor data = numbers<double>(r.stream, r.rank(), 100);
    const int last = r.size() - 1;
    if (last > 0 && r.rank() == 0) {
      const Transfer send[] = {{Transfer::Kind::send, data, last}};
      r.comm.exchange(send, r.stream);
    } else if (last > 0 && r.rank() == last) {
      const Transfer receive[] = {{Transfer::Kind::receive, data, 0}};
      r.comm.exchange(receive, r.stream);
      expect_numbers<double>(
          r.stream, data, [](std::int64_t i) { return number(0, i); }, "exchange");
    }
    r.comm.all_reduce(data, Reduce::max, r.stream);
  });
}

TEST_P(Conformance, SplitGivesGroupsOrderedByKey) {
  on_ranks([](Rank r) {
    const int color = r.rank() % 2;
    const std::unique_ptr<Communicator> group = r.comm.split(color, -r.rank());
    const int members = (r.size() - color + 1) / 2;
    EXPECT_EQ(group->size(), members);
    EXPECT_EQ(group->rank(), members - 1 - r.rank() / 2);
    const Tensor part = numbers<std::int32_t>(r.stream, r.rank(), 5);
    const Tensor whole = Tensor::empty(r.stream, DType::int32, {5 * members});
    group->all_gather(part, whole, r.stream);
    expect_numbers<std::int32_t>(
        r.stream, whole,
        [&](std::int64_t i) {
          const auto place = static_cast<int>(i / 5);
          return number((members - 1 - place) * 2 + color, i % 5);
        },
        "all_gather after split");
    const std::unique_ptr<Communicator> again = group->split(0, 0);
    EXPECT_EQ(again->size(), members);
    EXPECT_EQ(again->rank(), group->rank());
  });
}

// fp32 accumulation: 256 + 1 + 1 + 1 is 256 in bf16 steps, 260 when rounded once.
TEST_P(Conformance, SumsOfHalvesAreRoundedOnce) {
  on_ranks([](Rank r) {
    const Tensor data =
        Tensor::from_host<bfloat16>(r.stream, {bfloat16(r.rank() == 0 ? 256.0f : 1.0f)}, {1});
    r.comm.all_reduce(data, Reduce::sum, r.stream);
    const bfloat16 expected(256.0f + static_cast<float>(r.size() - 1));
    EXPECT_EQ(data.to_host<bfloat16>(r.stream)[0].bits, expected.bits);
  });
}

// Rank order decides the bits of a sum: ((1e8 + 1) - 1e8) is 0 in fp32, 1 in other orders.
TEST_P(Conformance, SumsAreFormedInRankOrder) {
  on_ranks([](Rank r) {
    const float mine[] = {1e8f, 1.0f, -1e8f, 0.25f};
    std::vector<float> values(300, mine[r.rank() % 4]);
    const Tensor data = Tensor::from_host(r.stream, values, {300});
    r.comm.all_reduce(data, Reduce::sum, r.stream);
    float expected = mine[0];
    for (int rank = 1; rank < r.size(); ++rank) {
      expected += mine[rank % 4];
    }
    EXPECT_EQ(data.to_host<float>(r.stream), std::vector<float>(300, expected));
  });
}

TEST_P(Conformance, MaximumWithNanIsNan) {
  on_ranks([](Rank r) {
    const float mine = r.rank() == r.size() - 1 ? NAN : 3.0f;
    const Tensor data = Tensor::from_host<float>(r.stream, {mine, 1.0f}, {2});
    r.comm.all_reduce(data, Reduce::max, r.stream);
    const std::vector<float> values = data.to_host<float>(r.stream);
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_EQ(values[1], 1.0f);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, ::testing::ValuesIn(setups()), setup_name);

}  // namespace
}  // namespace bloomery
