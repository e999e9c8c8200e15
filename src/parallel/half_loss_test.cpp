// The loss in fp16 against PyTorch's, step by step (tests/golden/half_loss.txt, made by
// tools/golden/half_loss.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "harness/device_test.h"
#include "parallel/head_loss.h"

namespace bloomery::testing {
namespace {

struct Golden {
  float scale = 0;
  std::vector<float> mask;
  std::vector<std::int32_t> labels;
  std::vector<float16> losses, logits, gradients;

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t columns() const { return static_cast<std::int64_t>(logits.size()) / rows(); }
};

void add_bits(const std::string& line, std::vector<float16>& numbers) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    float16& number = numbers.emplace_back();
    number.bits = static_cast<std::uint16_t>(std::stoi(word, nullptr, 16));
  }
}

Golden read_golden() {
  Golden golden;
  std::ifstream file(std::string(std::getenv("BLOOMERY_ROOT")) + "/tests/golden/half_loss.txt");
  std::string first, losses, logits, gradients;
  file >> golden.scale;
  std::getline(file, first);
  while (std::getline(file, first) && std::getline(file, losses) && std::getline(file, logits) &&
         std::getline(file, gradients)) {
    std::istringstream words(first);
    words >> golden.mask.emplace_back() >> golden.labels.emplace_back();
    add_bits(losses, golden.losses);
    add_bits(logits, golden.logits);
    add_bits(gradients, golden.gradients);
  }
  return golden;
}

// Steps between two neighbouring numbers of 16 bits.
int distance(float16 a, float16 b) {
  const auto place = [](float16 x) {
    const int size = x.bits & 0x7FFF;
    return (x.bits & 0x8000) != 0 ? -size : size;
  };
  return std::abs(place(a) - place(b));
}

struct Computed {
  std::vector<float16> losses, gradients;
};

// With the unit matrix as weight the logits are x, and the gradient of x is that of the logits.
Computed compute(const Golden& golden, DeviceKind kind, std::unique_ptr<Communicator> world) {
  Machine machine(kind);
  Stream& stream = machine.stream;
  const int ranks = world->size(), rank = world->rank();
  Mesh mesh({.tensor = ranks}, std::move(world));
  const std::int64_t rows = golden.rows(), columns = golden.columns(), held = columns / ranks;
  std::vector<float16> unit(static_cast<std::size_t>(held * columns), float16(0.0f));
  for (std::int64_t c = 0; c < held; ++c) {
    unit[static_cast<std::size_t>(c * columns + rank * held + c)] = float16(1.0f);
  }
  Parameter weight = make_parameter("head", Box::whole({held, columns}), {}, true);
  weight.value = Tensor::from_host(stream, unit, {held, columns});
  weight.grad = Tensor::empty(stream, DType::fp32, {held, columns});
  Batch batch;
  batch.labels = Tensor::from_host(stream, golden.labels, {rows});
  batch.loss_mask = Tensor::from_host(stream, golden.mask, {rows});
  batch.grad_scale = Tensor::from_host(stream, std::vector{golden.scale}, {1});
  Tape tape(stream);
  Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
  const Value x = tape.value(Tensor::from_host(stream, golden.logits, {rows, columns}));
  const HeadLoss head = head_loss(
      context, x, weight,
      {.vocabulary = columns, .first_token = rank * held, .fp16_loss = true, .chunk_tokens = 3});
  tape.backward();
  Computed computed{.gradients = x.slot->grad.to_host<float16>(stream)};
  for (const float loss : head.token_losses.to_host<float>(stream)) {
    computed.losses.emplace_back(loss);
    EXPECT_EQ(static_cast<float>(computed.losses.back()), loss) << "is a number of 16 bits";
  }
  return computed;
}

void expect_equal(const Golden& golden, const Computed& computed) {
  ASSERT_EQ(computed.losses.size(), golden.losses.size());
  ASSERT_EQ(computed.gradients.size(), golden.gradients.size());
  for (std::size_t i = 0; i < golden.losses.size(); ++i) {
    EXPECT_LE(distance(computed.losses[i], golden.losses[i]), 1) << "loss " << i;
  }
  // The sum of a row may be rounded to the neighbour, since it is added up in another order.
  int different = 0;
  for (std::size_t i = 0; i < golden.gradients.size(); ++i) {
    EXPECT_LE(distance(computed.gradients[i], golden.gradients[i]), 2) << "gradient " << i;
    different += computed.gradients[i].bits != golden.gradients[i].bits ? 1 : 0;
  }
  EXPECT_LE(different, static_cast<int>(golden.gradients.size()) / 20);
}

class HalfLoss : public DeviceTest {};

TEST_P(HalfLoss, EqualsPyTorchStepByStep) {
  const Golden golden = read_golden();
  ASSERT_EQ(golden.rows(), 8);
  expect_equal(golden, compute(golden, GetParam(), make_self_communicator()));
}

TEST_P(HalfLoss, EqualsOneRankWhenTheVocabularyIsSplit) {
  const Golden golden = read_golden();
  run_ranks(2, [&](int, std::unique_ptr<Communicator> world) {
    expect_equal(golden, compute(golden, GetParam(), std::move(world)));
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, HalfLoss, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
