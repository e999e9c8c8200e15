// Linear layers on grids: the schedule of their bits beside DeepSpeed's, products and gradients,
// and ranks that hold parts of a layer.
#include "parallel/fake_quant_layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "autograd/features.h"
#include "comm/threads.h"
#include "harness/golden_errors.h"
#include "parallel/parallel_linear.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kTokens = 6, kIn = 8, kOut = 4;
const char* const kName = "layer.weight";

TEST(WeightGrid, BitsFallAsInDeepSpeed) {
  std::ifstream file(repository_root() + "/tests/golden/fake_quantization.txt");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    WeightGrid grid;
    if (words >> word && word == "schedule" &&
        words >> grid.offset >> grid.start_bits >> grid.target_bits >> grid.period) {
      ++count;
      std::int64_t steps = 0;
      for (int bits = 0; words >> bits; ++steps) {
        ASSERT_EQ(grid.bits_after(steps), bits) << line.substr(0, 30) << ", step " << steps;
      }
      EXPECT_EQ(steps, 450);
    }
  }
  EXPECT_EQ(count, 4);
  const WeightGrid at_once{.start_bits = 12, .target_bits = 5, .offset = 3, .at_once = true};
  EXPECT_EQ(at_once.bits_after(2), 0);
  EXPECT_EQ(at_once.bits_after(3), 5);
}

std::vector<float> wave(std::int64_t count, float phase) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(std::sin(1.3f * static_cast<float>(i) + phase));
  }
  return numbers;
}

std::vector<float> held(const std::vector<float>& whole, const Box& box) {
  std::vector<float> part;
  for (std::int64_t i = 0; i < box.extent.numel(); ++i) {
    part.push_back(whole[static_cast<std::size_t>(box.global_index(i))]);
  }
  return part;
}

// What a row-parallel layer gives on so many tensor ranks in the second of two passes, and what it
// knows afterwards.
struct Found {
  std::vector<float> y, grad_x, grad_weight, range, weight;
};

Found run_layer(int size, const GridsOfWeights& grids) {
  Found found;
  run_ranks(size, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = size}, std::move(world));
    const ParallelLinear layer = ParallelLinear::row(mesh, "layer", kOut, kIn, false, {});
    ParameterList parameters;
    layer.collect(parameters);
    Parameter& weight = *parameters.front();
    weight.value =
        Tensor::from_host(stream, held(wave(kOut * kIn, 0), weight.box), weight.local_shape);
    weight.grad = Tensor::empty(stream, DType::fp32, weight.local_shape);
    FakeQuantLayers layers(stream, mesh, grids, parameters, rank == 0);
    const Features features{.fake_quantization = &layers};
    const Box columns = Box::whole({kTokens, kIn}).split(1, rank, size);
    Found mine;
    for (const float phase : {0.5f, 2.0f}) {
      layers.begin_pass(10, true);
      weight.grad_written = false;
      const Batch batch;
      Tape tape(stream);
      Context context{
          .stream = stream, .mesh = mesh, .batch = batch, .features = features, .tape = &tape};
      const Value x = tape.value(
          Tensor::from_host(stream, held(wave(kTokens * kIn, phase), columns), columns.extent));
      const Value y = layer(context, x);
      mine.y = y.data.to_host<float>(stream);
      tape.set_grad(y.slot, Tensor::from_host(stream, wave(kTokens * kOut, 3), {kTokens, kOut}));
      tape.backward();
      mine.grad_x = tape.grad(x.slot).to_host<float>(stream);
      mine.grad_weight = weight.grad.to_host<float>(stream);
      layers.end_step();
    }
    if (!layers.states().empty()) {
      mine.range = layers.states().front().range.to_host<float>(stream);
    }
    const Tensor numbers = weight.value.reshape({weight.value.numel()});
    layers.bake_quantization(std::vector<FakeQuantLayers::Numbers>{{&weight, numbers, 0}}, 10,
                             DType::fp32);
    mine.weight = numbers.to_host<float>(stream);
    if (rank == 0) {
      found = mine;
    }
    mesh.world().host().barrier("end");
  });
  return found;
}

const WeightGrid kWeightGrid{.groups = 4, .start_bits = 4, .target_bits = 4};

// The products are those of the rounded numbers, and gradients pass the rounding as they are.
TEST(FakeQuantLayers, ComputeWithRoundedNumbers) {
  const Found rounded =
      run_layer(1, {{kName, {kWeightGrid, InputGrid{.bits = 4, .symmetric = false}}}});
  std::vector<float> x = wave(kTokens * kIn, 2.0f);
  ASSERT_EQ(rounded.range.size(), 2u);
  // Of the second input, in its pass: the range moved by it.
  const float low = -rounded.range[0], scale = (rounded.range[1] - low) / 16;
  const float zero = std::nearbyint(low / scale) * scale;
  for (float& each : x) {
    each = std::min(std::max(std::nearbyint((each - zero) / scale), 0.0f), 15.0f) * scale + zero;
  }
  const std::vector<float>& w = rounded.weight;
  const std::vector<float> dy = wave(kTokens * kOut, 3);
  EXPECT_NE(w, wave(kOut * kIn, 0));
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t o = 0; o < kOut; ++o) {
      float y = 0;
      for (std::size_t i = 0; i < kIn; ++i) y += x[t * kIn + i] * w[o * kIn + i];
      EXPECT_NEAR(rounded.y[t * kOut + o], y, 1e-5);
    }
    for (std::size_t i = 0; i < kIn; ++i) {
      float dx = 0;
      for (std::size_t o = 0; o < kOut; ++o) dx += dy[t * kOut + o] * w[o * kIn + i];
      EXPECT_NEAR(rounded.grad_x[t * kIn + i], dx, 1e-5);
    }
  }
  for (std::size_t o = 0; o < kOut; ++o) {
    for (std::size_t i = 0; i < kIn; ++i) {
      float dw = 0;
      for (std::size_t t = 0; t < kTokens; ++t) dw += dy[t * kOut + o] * x[t * kIn + i];
      EXPECT_NEAR(rounded.grad_weight[o * kIn + i], dw, 1e-5);
    }
  }
}

TEST(FakeQuantLayers, RanksTogetherAreOne) {
  const GridsOfWeights grids = {{kName, {kWeightGrid, InputGrid{.bits = 8, .symmetric = false}}}};
  const Found one = run_layer(1, grids), two = run_layer(2, grids);
  EXPECT_EQ(one.range, two.range);
  for (std::size_t i = 0; i < one.y.size(); ++i) EXPECT_NEAR(one.y[i], two.y[i], 1e-6);
  const Box half = Box::whole({kOut, kIn}).split(1, 0, 2);
  EXPECT_EQ(held(one.weight, half), two.weight);
}

TEST(FakeQuantLayers, NothingIsRoundedBeforeItsTime) {
  const GridsOfWeights late = {
      {kName, {WeightGrid{.groups = 4, .offset = 10}, InputGrid{.offset = 11}}}};
  const Found plain = run_layer(1, {}), waits = run_layer(1, late);
  EXPECT_EQ(plain.y, waits.y);
  EXPECT_EQ(plain.weight, waits.weight);
  EXPECT_EQ(waits.range, (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace bloomery::testing
