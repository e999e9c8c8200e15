// Beside DeepSpeed's own functions, bit for bit (tools/golden/fake_quantization.py), and of parts
// of a tensor beside the whole.
#include "ops/fake_quantization/fake_quantization.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "harness/device_test.h"
#include "harness/golden_errors.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kCount = 48;

class FakeQuantizationTest : public DeviceTest {};

struct Case {
  DType dtype;
  int bits, symmetric;
  std::int64_t groups;
  std::vector<std::vector<double>> rows;  // of kCount numbers
};

std::vector<Case> cases(const std::string& kind) {
  std::ifstream file(repository_root() + "/tests/golden/fake_quantization.txt");
  std::vector<Case> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, dtype;
    Case made{};
    if (!(words >> word) || word != kind) {
      continue;
    }
    words >> dtype >> made.bits >> made.symmetric >> made.groups;
    made.dtype = dtype == "fp32" ? DType::fp32 : dtype == "fp16" ? DType::fp16 : DType::bf16;
    for (double number = 0; words >> number;) {
      if (made.rows.empty() || made.rows.back().size() == kCount) {
        made.rows.emplace_back();
      }
      made.rows.back().push_back(number);
    }
    all.push_back(made);
  }
  return all;
}

Tensor find_ranges(Stream& stream, const Tensor& x, const GroupPlaces& places) {
  Tensor ranges = Tensor::empty(stream, DType::fp32, {2 * places.groups});
  launch(stream, FindRanges{.x = x, .ranges = ranges, .places = places});
  return ranges;
}

TEST_P(FakeQuantizationTest, WeightsAreThoseOfDeepSpeed) {
  Machine machine(GetParam());
  const std::vector<Case> all = cases("weights");
  ASSERT_EQ(all.size(), 18u);
  for (const Case& c : all) {
    const Tensor x = to_device(machine.stream, c.dtype, c.rows.at(0));
    const GroupPlaces places = group_places("x", Box::whole({6, 8}), c.groups);
    launch(machine.stream, FakeQuantize{.x = x,
                                        .y = x,
                                        .ranges = find_ranges(machine.stream, x, places),
                                        .places = places,
                                        .bits = c.bits,
                                        .symmetric = c.symmetric != 0});
    EXPECT_EQ(to_doubles(machine.stream, x), c.rows.at(1))
        << name(c.dtype) << " " << c.bits << " " << c.symmetric << " " << c.groups;
  }
}

// Three inputs of training, by which the range moves, then one of an evaluation.
TEST_P(FakeQuantizationTest, RangesFollowInputsAsInDeepSpeed) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const std::vector<Case> all = cases("activations");
  ASSERT_EQ(all.size(), 3u);
  for (const Case& c : all) {
    const Tensor range = Tensor::zeros(stream, DType::fp32, {2});
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const Tensor largest = Tensor::from_host<float>(stream, {kNone, kNone}, {2});
    for (std::size_t step = 0; step < 4; ++step) {
      const Tensor x = to_device(stream, c.dtype, c.rows.at(2 * step));
      if (step < 3) {
        launch(stream, FollowRanges{.range = range,
                                    .seen = find_ranges(stream, x, one_group(kCount)),
                                    .to = range,
                                    .largest = largest,
                                    .momentum = 0.95f});
      }
      launch(stream, FakeQuantize{.x = x,
                                  .y = x,
                                  .ranges = range,
                                  .places = one_group(kCount),
                                  .bits = c.bits,
                                  .symmetric = c.symmetric != 0,
                                  .own_ranges = false});
      const std::vector<double> found = to_doubles(stream, x), &expected = c.rows.at(2 * step + 1);
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-5) << c.bits << ", input " << step;
      }
    }
    const std::vector<float> seen = largest.to_host<float>(stream);
    for (const std::size_t row : {0, 2, 4}) {
      for (const double number : c.rows[row]) {
        EXPECT_LE(number, seen[1]);
        EXPECT_LE(-number, seen[0]);
      }
    }
  }
}

// The parts of ranks, cut along any dimension, and ranges within them.
TEST_P(FakeQuantizationTest, PartsHaveTheGridsOfTheWhole) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Shape shape{4, 6, 10};
  std::vector<double> numbers;
  for (int i = 0; i < shape.numel(); ++i) numbers.push_back(std::sin(0.7 * i) * (1 + i % 7));
  const Tensor x = to_device(stream, DType::fp32, numbers);
  const GroupPlaces all = group_places("x", Box::whole(shape), 5);
  const Tensor ranges = find_ranges(stream, x, all);
  const Tensor y = Tensor::empty(stream, DType::fp32, {shape.numel()});
  launch(stream, FakeQuantize{.x = x, .y = y, .ranges = ranges, .places = all, .bits = 4});
  const std::vector<double> whole = to_doubles(stream, y);
  for (int dim = 0; dim < 3; ++dim) {
    std::vector<float> joined(10, -1e9f);
    for (int rank = 0; rank < 2; ++rank) {
      const Box box = Box::whole(shape).split(dim, rank, 2);
      GroupPlaces places = group_places("x", box, 5);
      places.first = 7;
      places.count -= 7 + 3;
      std::vector<double> part, expected;
      for (std::int64_t i = 0; i < places.count; ++i) {
        const auto at = static_cast<std::size_t>(box.global_index(i + places.first));
        part.push_back(numbers[at]);
        expected.push_back(whole[at]);
      }
      const Tensor held = to_device(stream, DType::fp32, part);
      launch(stream,
             FakeQuantize{.x = held, .y = held, .ranges = ranges, .places = places, .bits = 4});
      EXPECT_EQ(to_doubles(stream, held), expected) << dim << " " << rank;
      // Without the range: maxima over ranks are the whole's.
      const GroupPlaces own = group_places("x", box, 5);
      std::vector<double> everything;
      for (std::int64_t i = 0; i < own.count; ++i) {
        everything.push_back(numbers[static_cast<std::size_t>(box.global_index(i))]);
      }
      const std::vector<float> found =
          find_ranges(stream, to_device(stream, DType::fp32, everything), own)
              .to_host<float>(stream);
      for (std::size_t i = 0; i < 10; ++i) joined[i] = std::max(joined[i], found[i]);
    }
    EXPECT_EQ(joined, ranges.to_host<float>(stream)) << dim;
  }
}

TEST_P(FakeQuantizationTest, EqualNumbersStayAndWhatIsNoNumberIsNotFollowed) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  for (const bool symmetric : {false, true}) {
    const Tensor x = to_device(stream, DType::fp32, std::vector<double>(kCount, 0.0));
    const GroupPlaces places = one_group(kCount);
    const Tensor ranges = find_ranges(stream, x, places);
    EXPECT_EQ(ranges.to_host<float>(stream), (std::vector<float>{0, 0}));
    launch(stream, FakeQuantize{
                       .x = x, .y = x, .ranges = ranges, .places = places, .symmetric = symmetric});
    EXPECT_EQ(to_doubles(stream, x), std::vector<double>(kCount, 0.0));
  }
  const Tensor range = Tensor::from_host<float>(stream, {1, 2}, {2});
  const Tensor seen = Tensor::from_host<float>(stream, {3, INFINITY}, {2});
  launch(stream, FollowRanges{.range = range, .seen = seen, .to = range, .momentum = 0.5f});
  EXPECT_EQ(range.to_host<float>(stream), (std::vector<float>{1, 2}));
  EXPECT_THROW(group_places("a weight", Box::whole({6, 8}), 5), Error);
}

INSTANTIATE_TEST_SUITE_P(devices, FakeQuantizationTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
