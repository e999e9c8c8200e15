// How the norm and the residual addition behave on the tape: buffers shared and taken over,
// deferred weight gradients, outputs that nobody uses; and that settling changes no bit.
#include <gtest/gtest.h>

#include "build_config.h"
#include "comm/mesh.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/norm/norm.h"

namespace bloomery {
namespace {

constexpr RandomKey kKey = 77;

// Bits of all that a model computed, by the order in which it was asked for.
using Bits = std::vector<std::vector<std::uint16_t>>;

struct Setting {
  DType stream = DType::bf16;
  float dropout = 0;
  bool deferred = false;
  std::int64_t columns = 72;
};

// A device, a tape and values of bf16 (the stream perhaps fp32) drawn from their names.
class Bench {
 public:
  Bench(DeviceKind kind, const Setting& setting)
      : setting(setting), device({.kind = kind, .poison = true}), stream(device), tape(stream) {
    batch.num_sequences = 2;
    batch.length = kRows / 2;
    batch.samples = Tensor::from_host<std::int64_t>(stream, {3, 8}, {2});
    std::vector<std::int32_t> places(static_cast<std::size_t>(batch.length));
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<std::int32_t>(i);
    }
    batch.places = Tensor::from_host(stream, places, {batch.length});
    tape.deferred = setting.deferred ? &queue : nullptr;
  }

  Tensor drawn(const std::string& name, DType dtype, const Shape& shape) {
    const RandomKey key = random_key(5, name);
    return dispatch_floating(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values(static_cast<std::size_t>(shape.numel()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = T(static_cast<float>(random_normal(key, i)));
      }
      return Tensor::from_host(stream, values, shape);
    });
  }
  Value value(const std::string& name, DType dtype) {
    return tape.value(drawn(name, dtype, {kRows, setting.columns}));
  }
  Parameter parameter(const std::string& name) {
    const Shape shape{setting.columns};
    Parameter parameter = make_parameter(name, Box::whole(shape), {}, false);
    parameter.value = drawn(name, DType::bf16, shape);
    parameter.grad = Tensor::empty(stream, DType::fp32, shape);
    return parameter;
  }
  void seed(const Value& value, const std::string& name) {
    tape.set_grad(value.slot, drawn(name, value.dtype(), value.shape()));
  }
  void backward() {
    tape.backward();
    queue.run_all();
  }
  std::vector<std::uint16_t> bits(const Tensor& tensor) {
    std::vector<std::uint16_t> words(tensor.bytes() / 2);
    stream.copy(words.data(), tensor.data(), tensor.bytes());
    stream.synchronize();
    return words;
  }
  DropoutOptions dropout() const { return {.probability = setting.dropout, .key = kKey}; }

  static constexpr std::int64_t kRows = 40;
  Setting setting;
  Device device;
  Stream stream;
  Mesh mesh = Mesh::single();
  Batch batch;
  WeightQueue queue;
  Tape tape;
  Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = true};
};

class NormTape : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::cuda && num_cuda_devices() == 0) {
      GTEST_SKIP() << "no GPU on this machine";
    }
  }
};

// Two pre-norm branches, one after the other. The second norm finds a gradient of the stream that
// it can change in place, and the branches read the stream's buffer.
Bits sequential(Bench& bench) {
  const Value start = bench.value("start", bench.setting.stream);
  const Value first = bench.value("first", DType::bf16);
  Parameter gain_1 = bench.parameter("gain_1"), bias_1 = bench.parameter("bias_1");
  Parameter gain_2 = bench.parameter("gain_2");
  {
    const NormResult one = add_norm(bench.context, start, first, gain_1, &bias_1, {});
    const Value branch = scale(bench.context, one.y, 0.5f);
    const NormResult two = add_norm(bench.context, one.stream, branch, gain_2, nullptr,
                                    {.kind = NormKind::rms}, bench.dropout());
    const Value end =
        add_pending(bench.context, two.stream, scale(bench.context, two.y, -2.0f), bench.dropout());
    bench.seed(end, "end");
  }
  bench.backward();
  return {bench.bits(start.slot->grad), bench.bits(first.slot->grad), bench.bits(gain_1.grad),
          bench.bits(bias_1.grad), bench.bits(gain_2.grad)};
}

// Two norms of one stream whose branches are added later: the stream's gradient is written again
// while the first branch has yet to read its own.
Bits parallel(Bench& bench) {
  const Value start = bench.value("start", bench.setting.stream);
  Parameter gain_1 = bench.parameter("gain_1"), gain_2 = bench.parameter("gain_2");
  {
    const Value a =
        scale(bench.context, add_norm(bench.context, start, {}, gain_1, nullptr, {}).y, 0.5f);
    const Value b =
        scale(bench.context, add_norm(bench.context, start, {}, gain_2, nullptr, {}).y, -3.0f);
    const Value end = add_pending(bench.context, add_pending(bench.context, start, a), b);
    bench.seed(end, "end");
  }
  bench.backward();
  return {bench.bits(start.slot->grad), bench.bits(gain_1.grad), bench.bits(gain_2.grad)};
}

// A branch that enters the stream twice, and a stream that is also its own branch.
Bits repeated(Bench& bench) {
  const Value start = bench.value("start", DType::bf16);
  const Value branch = bench.value("branch", DType::bf16);
  Parameter gain = bench.parameter("gain");
  {
    const Value once = add_pending(bench.context, start, branch);
    const NormResult twice = add_norm(bench.context, once, branch, gain, nullptr, {});
    const NormResult doubled =
        add_norm(bench.context, twice.stream, twice.stream, gain, nullptr, {});
    bench.seed(doubled.stream, "stream");
    bench.seed(doubled.y, "y");
    bench.seed(twice.y, "twice");
  }
  gain.uses = 2;
  bench.backward();
  return {bench.bits(start.slot->grad), bench.bits(branch.slot->grad), bench.bits(gain.grad)};
}

// With deferred weight gradients no buffer is shared, so this is the plain computation.
void expect_sharing_changes_no_bit(DeviceKind device, Bits (*model)(Bench&)) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const float dropout : {0.0f, 0.25f}) {
      for (const std::int64_t columns : {72, 13, 1600}) {
        Bench shared(device, {dtype, dropout, false, columns});
        Bench plain(device, {dtype, dropout, true, columns});
        EXPECT_EQ(model(shared), model(plain)) << dtype << ' ' << dropout << ' ' << columns;
      }
    }
  }
}

TEST_P(NormTape, SharedBuffersChangeNoBitInAChain) {
  expect_sharing_changes_no_bit(GetParam(), sequential);
}
TEST_P(NormTape, SharedBuffersChangeNoBitInParallelBranches) {
  expect_sharing_changes_no_bit(GetParam(), parallel);
}
TEST_P(NormTape, SharedBuffersChangeNoBitWhenABranchEntersTwice) {
  expect_sharing_changes_no_bit(GetParam(), repeated);
}

TEST_P(NormTape, StreamAndBranchTakeOverTheGradientBuffer) {
  Bench bench(GetParam(), {});
  const Value start = bench.value("start", DType::bf16);
  const Value branch = bench.value("branch", DType::bf16);
  Parameter gain = bench.parameter("gain");
  const NormResult result = add_norm(bench.context, start, branch, gain, nullptr, {});
  bench.seed(result.stream, "stream");
  bench.seed(result.y, "y");
  const void* seeded = result.stream.slot->grad.data();
  bench.backward();
  EXPECT_EQ(start.slot->grad.data(), seeded);
  EXPECT_EQ(branch.slot->grad.data(), seeded);
}

TEST_P(NormTape, SettlingFirstChangesNoBit) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const float dropout : {0.0f, 0.25f}) {
      for (const std::int64_t columns : {13, 768, 1600}) {
        Bench bench(GetParam(), {dtype, dropout, false, columns});
        const Value start = bench.value("start", dtype);
        const Value branch = bench.value("branch", DType::bf16);
        Parameter gain = bench.parameter("gain"), bias = bench.parameter("bias");
        const NormResult fused =
            add_norm(bench.context, start, branch, gain, &bias, {}, bench.dropout());
        const Value settled = add_pending(bench.context, start, branch, bench.dropout());
        const NormResult after = add_norm(bench.context, settled, {}, gain, &bias, {});
        EXPECT_EQ(bench.bits(fused.stream.data), bench.bits(settled.data));
        EXPECT_EQ(bench.bits(fused.y.data), bench.bits(after.y.data));
        EXPECT_EQ(after.stream.data.data(), settled.data.data());
      }
    }
  }
}

TEST_P(NormTape, UnusedNormPassesTheStreamGradientOnAndLeavesZeroParameterGradients) {
  for (const bool deferred : {false, true}) {
    Bench bench(GetParam(), {.deferred = deferred});
    const Value start = bench.value("start", DType::bf16);
    const Value branch = bench.value("branch", DType::bf16);
    Parameter gain = bench.parameter("gain"), bias = bench.parameter("bias");
    const NormResult result = add_norm(bench.context, start, branch, gain, &bias, {});
    bench.seed(result.stream, "stream");
    const auto expected = bench.bits(result.stream.slot->grad);
    bench.backward();
    EXPECT_EQ(bench.bits(start.slot->grad), expected);
    EXPECT_EQ(bench.bits(branch.slot->grad), expected);
    EXPECT_EQ(gain.grad.to_host<float>(bench.stream), std::vector<float>(72, 0.0f));
    EXPECT_EQ(bias.grad.to_host<float>(bench.stream), std::vector<float>(72, 0.0f));
  }
}

TEST_P(NormTape, InputsThatWantNoGradientGetNone) {
  Bench bench(GetParam(), {});
  const Value start{bench.drawn("start", DType::bf16, {Bench::kRows, 72}), nullptr};
  Parameter gain = bench.parameter("gain"), alone = bench.parameter("gain");
  const Value branch = bench.value("branch", DType::bf16);
  const NormResult result = add_norm(bench.context, start, branch, gain, nullptr, {});
  bench.seed(result.y, "y");
  bench.backward();
  const Value detached{branch.data, nullptr};
  const NormResult again = add_norm(bench.context, start, detached, alone, nullptr, {});
  bench.seed(again.y, "y");
  bench.backward();
  EXPECT_TRUE(static_cast<bool>(branch.slot->grad));
  EXPECT_EQ(bench.bits(gain.grad), bench.bits(alone.grad));
  EXPECT_FALSE(add_norm(bench.context, start, {}, gain, nullptr, {}).stream.wants_grad());
}

TEST_P(NormTape, WithoutTapeTheSameForward) {
  Bench bench(GetParam(), {});
  const Value start = bench.value("start", DType::bf16);
  const Value branch = bench.value("branch", DType::bf16);
  Parameter gain = bench.parameter("gain");
  const NormResult taped = add_norm(bench.context, start, branch, gain, nullptr, {});
  Context untaped = bench.context;
  untaped.tape = nullptr;
  const NormResult plain = add_norm(untaped, start, branch, gain, nullptr, {});
  EXPECT_EQ(bench.bits(taped.y.data), bench.bits(plain.y.data));
  EXPECT_FALSE(plain.y.wants_grad());
}

// Rows [first, first + count) of the tokens, as a rank with a part of them holds them: the bits of
// those rows of the whole.
TEST_P(NormTape, APartOfTheRowsDropsWhatTheWholeDoesThere) {
  constexpr std::int64_t kFirst = 13, kCount = 17;
  Bench bench(GetParam(), {.dropout = 0.5f});
  const Tensor stream = bench.drawn("stream", DType::bf16, {Bench::kRows, bench.setting.columns});
  const Tensor branch = bench.drawn("branch", DType::bf16, {Bench::kRows, bench.setting.columns});
  const auto run = [&](std::int64_t first, std::int64_t count) -> Bits {
    DropoutOptions dropout = bench.dropout();
    dropout.tokens = {first, count};
    const Value x = bench.tape.value(stream.slice(first, first + count));
    const Value pending = bench.tape.value(branch.slice(first, first + count));
    Parameter gain = bench.parameter("gain");
    const NormResult norm = add_norm(bench.context, x, pending, gain, nullptr, {}, dropout);
    return {bench.bits(add_pending(bench.context, x, pending, dropout).data),
            bench.bits(norm.stream.data), bench.bits(norm.y.data)};
  };
  Bits whole = run(0, Bench::kRows);
  for (std::vector<std::uint16_t>& bits : whole) {
    const auto begin = bits.begin() + kFirst * bench.setting.columns;
    bits = std::vector<std::uint16_t>(begin, begin + kCount * bench.setting.columns);
  }
  EXPECT_EQ(run(kFirst, kCount), whole);
}

INSTANTIATE_TEST_SUITE_P(devices, NormTape,
                         ::testing::ValuesIn(build::cuda
                                                 ? std::vector{DeviceKind::cpu, DeviceKind::cuda}
                                                 : std::vector{DeviceKind::cpu}),
                         [](const auto& info) {
                           return info.param == DeviceKind::cuda ? "cuda" : "cpu";
                         });

TEST(Norm, MistakesAreNamed) {
  Bench bench(DeviceKind::cpu, {});
  const Value start = bench.value("start", DType::bf16);
  const Value wide = bench.value("start", DType::fp32);
  Parameter gain = bench.parameter("gain"), short_gain = bench.parameter("short_gain");
  short_gain.value = bench.drawn("short_gain", DType::bf16, {71});
  EXPECT_THROW(add_norm(bench.context, start, {}, short_gain, nullptr, {}), Error);
  EXPECT_THROW(add_norm(bench.context, start, {}, gain, &short_gain, {}), Error);
  EXPECT_THROW(add_norm(bench.context, start, wide, gain, nullptr, {}), Error);
  EXPECT_THROW(add_pending(bench.context, start, wide), Error);
  gain.value = bench.drawn("gain", DType::fp32, {72});
  EXPECT_THROW(add_norm(bench.context, start, {}, gain, nullptr, {}), Error);
  EXPECT_THROW(add_norm(bench.context, wide, {}, gain, nullptr, {.epsilon = -1}), Error);
}

}  // namespace
}  // namespace bloomery
