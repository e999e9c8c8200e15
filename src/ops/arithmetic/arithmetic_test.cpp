#include "ops/arithmetic/arithmetic.h"

#include <bit>
#include <cmath>
#include <limits>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

std::vector<OpCase> add_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t count : {1, 7, 64, 1021, 40960}) {
    cases.push_back({.name = concat("count=", count),
                     .inputs = {{.name = "a", .shape = {count}}, {.name = "b", .shape = {count}}},
                     .forward = [](Context& context, Inputs& in) -> Outputs {
                       return {{"y", add(context, in.value("a"), in.value("b"))}};
                     }});
  }
  return cases;
}

std::vector<OpCase> scale_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t count : {1, 13, 4096}) {
    cases.push_back({.name = concat("count=", count),
                     .inputs = {{.name = "x", .shape = {count}}},
                     .forward = [](Context& context, Inputs& in) -> Outputs {
                       return {{"y", scale(context, in.value("x"), -0.375f)}};
                     },
                     .attributes = {{"factor", "-0.375"}}});
  }
  return cases;
}

// The oracle casts to the same dtype: results and gradients must equal it to the last bit, and
// PyTorch's errors have nothing to add.
std::vector<OpCase> cast_cases() {
  std::vector<OpCase> cases;
  const auto push = [&cases](DType from, DType to, std::int64_t count, double deviation) {
    cases.push_back(
        {.name = concat("from=", from, ",to=", to, ",count=", count, ",deviation=", deviation),
         .inputs = {{.name = "x", .shape = {count}, .deviation = deviation}},
         .forward = [to](Context& context, Inputs& in) -> Outputs {
           return {{"y", cast(context, in.value("x"), to)}};
         },
         .finite_differences = false,  // rounding has steps
         .dtypes = {from},
         .tolerance = {{from, 0.0}}});
  };
  for (const DType half : {DType::bf16, DType::fp16}) {
    for (const std::int64_t count : {0, 1, 2, 13, 64, 1021, 40961}) {
      push(DType::fp32, half, count, 1);
      push(half, DType::fp32, count, 1);
    }
    push(DType::fp32, half, 4099, 1e5);   // fp16 overflows
    push(DType::fp32, half, 4099, 1e-6);  // fp16 is subnormal
    push(half, DType::fp32, 4099, 1e-6);
  }
  push(DType::bf16, DType::fp16, 4099, 1e5);
  push(DType::fp16, DType::bf16, 4099, 1);
  return cases;
}

const bool kRegistered = register_op_tests("add", add_cases()) &&
                         register_op_tests("scale", scale_cases()) &&
                         register_op_tests("cast", cast_cases());

// Numbers at the ends of the ranges and halfway between neighbours, with what IEEE 754 says they
// become. Positive ones; the negative mirror themselves.
struct Rounding {
  double from, to;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Rounding> roundings_to_fp16() {
  return {{0, 0},
          {1, 1},
          {1 + 0x1p-11, 1},                // ties go to the even neighbour: down
          {1 + 0x3p-11, 1 + 0x1p-9},       // and up
          {1 + 0x1.002p-11, 1 + 0x1p-10},  // just above a tie
          {65504, 65504},                  // the largest
          {65519.99609375, 65504},         // the largest fp32 that does not overflow
          {65520, kInfinity},              // halfway to 65536
          {0x1.fffffep127, kInfinity},     // the largest fp32
          {kInfinity, kInfinity},
          {0x1p-14, 0x1p-14},          // the smallest normal
          {0x1.ff8p-15, 0x1.ff8p-15},  // the largest subnormal
          {0x1p-24, 0x1p-24},          // the smallest subnormal
          {0x1p-25, 0},                // a tie between it and zero
          {0x1.000002p-25, 0x1p-24},   // just above
          {0x3p-25, 0x1p-23},          // a tie between subnormals
          {0x1p-149, 0}};              // the smallest fp32
}

std::vector<Rounding> roundings_to_bf16() {
  return {{0, 0},
          {1, 1},
          {1 + 0x1p-8, 1},
          {1 + 0x3p-8, 1 + 0x1p-6},
          {1 + 0x1.002p-8, 1 + 0x1p-7},
          {65520, 65536},
          {0x1.fep127, 0x1.fep127},      // the largest
          {0x1.fefffep127, 0x1.fep127},  // the largest fp32 that does not overflow
          {0x1.ffp127, kInfinity},       // halfway to 2^128
          {0x1.fffffep127, kInfinity},   // the largest fp32
          {kInfinity, kInfinity},
          {0x1p-126, 0x1p-126},  // the smallest normal
          {0x1p-133, 0x1p-133},  // the smallest subnormal
          {0x1p-134, 0},         // a tie between it and zero
          {0x3p-134, 0x1p-132},  // a tie between subnormals
          {0x1p-149, 0}};        // the smallest fp32
}

class Cast : public DeviceTest {
 protected:
  // The bits of x of one dtype after a cast to another, and of the gradient of a cast back.
  struct Bits {
    std::vector<unsigned char> forward, gradient;
  };
  static Bits cast_bits(DeviceKind kind, DType from, DType to, const std::vector<double>& x) {
    Machine machine(kind);
    Mesh mesh = Mesh::single();
    const Batch batch;
    Tape tape(machine.stream);
    Context context{.stream = machine.stream, .mesh = mesh, .batch = batch, .tape = &tape};
    const Tensor numbers = to_device(machine.stream, from, x);
    Bits bits;
    Context inference{.stream = machine.stream, .mesh = mesh, .batch = batch};
    bits.forward = to_bytes(machine.stream, cast(inference, {numbers, nullptr}, to).data);
    const Value back = context.wrap(Tensor::zeros(machine.stream, to, numbers.shape()));
    tape.set_grad(cast(context, back, from).slot, numbers);
    tape.backward();
    bits.gradient = to_bytes(machine.stream, tape.grad(back.slot));
    return bits;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Cast, every_device(), device_label);

TEST_P(Cast, RoundsToTheNearestAndTiesToEven) {
  for (const DType to : {DType::fp16, DType::bf16}) {
    std::vector<double> numbers, expected;
    for (const Rounding& r : to == DType::fp16 ? roundings_to_fp16() : roundings_to_bf16()) {
      numbers.insert(numbers.end(), {r.from, -r.from});
      expected.insert(expected.end(), {r.to, -r.to});
    }
    Machine machine(DeviceKind::cpu);
    const auto wanted = to_bytes(machine.stream, to_device(machine.stream, to, expected));
    ASSERT_EQ(to_doubles(machine.stream, to_device(machine.stream, to, expected)), expected);
    const Bits narrow = cast_bits(GetParam(), DType::fp32, to, numbers);
    EXPECT_EQ(narrow.forward, wanted) << to;
    EXPECT_EQ(narrow.gradient, wanted) << to;

    const auto widened = to_bytes(machine.stream, to_device(machine.stream, DType::fp32, expected));
    const Bits wide = cast_bits(GetParam(), to, DType::fp32, expected);
    EXPECT_EQ(wide.forward, widened) << to;
    EXPECT_EQ(wide.gradient, widened) << to;
  }
}

// Every number of 16 bits survives the way to fp32 and back; NaNs stay NaNs, with any payload.
TEST_P(Cast, EveryNumberOf16BitsSurvives) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
  for (const DType half : {DType::fp16, DType::bf16}) {
    std::vector<std::uint16_t> all(0x10000);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<std::uint16_t>(i);
    }
    const Tensor x = Tensor::empty(machine.stream, half, {0x10000});
    machine.stream.copy(x.data(), all.data(), x.bytes());
    const Value wide = cast(context, {x, nullptr}, DType::fp32);
    const Value back = cast(context, wide, half);
    std::vector<std::uint16_t> found(all.size());
    machine.stream.copy(found.data(), back.data.data(), back.data.bytes());
    const std::vector<float> values = wide.data.to_host<float>(machine.stream);
    const std::vector<double> again = to_doubles(machine.stream, back.data);
    const unsigned infinity = half == DType::fp16 ? 0x7C00 : 0x7F80;
    for (unsigned i = 0; i < all.size(); ++i) {
      if ((i & 0x7FFF) > infinity) {
        ASSERT_TRUE(std::isnan(values[i]) && std::isnan(again[i])) << half << ' ' << i;
      } else {
        ASSERT_EQ(found[i], i) << half;
      }
    }
  }
}

// Also one whose payload lies in the bits that are cut off.
TEST_P(Cast, NanStaysNan) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
  std::vector<float> numbers;
  for (const std::uint32_t bits : {0x7F800001u, 0xFF800001u, 0x7FC00000u, 0x7FFFFFFFu}) {
    numbers.push_back(std::bit_cast<float>(bits));
  }
  const Tensor x = Tensor::from_host(machine.stream, numbers, {4});
  for (const DType half : {DType::fp16, DType::bf16}) {
    for (const double y : to_doubles(machine.stream, cast(context, {x, nullptr}, half).data)) {
      EXPECT_TRUE(std::isnan(y)) << half << ' ' << y;
    }
  }
}

TEST_P(Cast, ToItsOwnDtypeIsTheValueItself) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  const Batch batch;
  Tape tape(machine.stream);
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch, .tape = &tape};
  const Value x = context.wrap(Tensor::zeros(machine.stream, DType::bf16, {3}));
  const Value y = cast(context, x, DType::bf16);
  EXPECT_EQ(y.slot, x.slot);
  EXPECT_EQ(y.data.data(), x.data.data());
  EXPECT_EQ(tape.num_entries(), 0u);
}

TEST(Arithmetic, WhatNobodyUsesHasNoGradient) {
  Machine machine(DeviceKind::cpu);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Tape tape(machine.stream);
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch, .tape = &tape};
  const Value x = context.wrap(Tensor::zeros(machine.stream, DType::fp32, {3}));
  add(context, x, x);
  scale(context, x, 2);
  cast(context, x, DType::bf16);
  ASSERT_EQ(tape.num_entries(), 3u);
  tape.backward();
  EXPECT_FALSE(tape.grad(x.slot));
}

}  // namespace
}  // namespace bloomery::testing
