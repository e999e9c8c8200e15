// Layers and tokens that training passes leave out.
#include <gtest/gtest.h>

#include <algorithm>

#include "nn/layer_case.h"
#include "nn/layer_dropping.h"
#include "nn/token_dropping.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery::testing {
namespace {

TEST(LayerDropOptions, FallAsDeepSpeeds) {
  const LayerDropOptions options{.theta = 0.5, .gamma = 0.01};
  EXPECT_EQ(options.theta_after(0), 1);
  EXPECT_EQ(options.theta_after(1), 1);
  EXPECT_DOUBLE_EQ(options.theta_after(101), 0.5 * std::exp(-1.0) + 0.5);
  EXPECT_NEAR(options.theta_after(100000), 0.5, 1e-12);
}

TEST(LayerDropping, DropsDeepLayersMoreOften) {
  constexpr int kLayers = 4, kSteps = 5000;
  LayerCase pass;
  pass.training = true;
  const Context context = pass.context(nullptr);
  for (int layer = 0; layer < kLayers; ++layer) {
    int dropped = 0;
    for (int step = 0; step < kSteps; ++step) {
      const LayerDropping dropping{.theta = 0.2, .step = step, .num_layers = kLayers};
      dropped += dropping.drops(context, layer) ? 1 : 0;
    }
    const double expected = layer * 0.8 / kLayers;
    EXPECT_NEAR(static_cast<double>(dropped) / kSteps, expected, layer == 0 ? 0 : 0.03) << layer;
  }
}

TEST(LayerDropping, LeavesEvaluationsAlone) {
  LayerCase pass;
  const Context context = pass.context(nullptr);
  for (int step = 0; step < 100; ++step) {
    EXPECT_FALSE((LayerDropping{.theta = 0, .step = step, .num_layers = 2}).drops(context, 1));
  }
}

class OneWeight final : public Block {
 public:
  State forward(Context&, State state) const override { return state; }
  void collect(ParameterList& parameters) const override { parameters.push_back(&weight); }

  mutable Parameter weight = make_parameter("weight", Box::whole({3}), {}, true);
};

TEST(PassBy, GivesZerosToGradientsThatNobodyWrote) {
  for (const bool written : {false, true}) {
    LayerCase pass;
    OneWeight block;
    block.weight.grad = Tensor::from_host<double>(pass.stream, {7, 8, 9}, {3});
    block.weight.grad_written = written;
    Tape tape(pass.stream);
    Context context = pass.context(&tape);
    const Value x = tape.value(Tensor::zeros(pass.stream, DType::fp64, {2, 3}));
    const State state = pass_by(context, block, {.stream = x});
    EXPECT_EQ(state.stream.slot, x.slot);
    tape.set_grad(x.slot, Tensor::zeros(pass.stream, DType::fp64, {2, 3}));
    tape.backward();
    EXPECT_EQ(block.weight.grad.to_host<double>(pass.stream),
              written ? (Numbers{7, 8, 9}) : Numbers(3));
  }
}

constexpr std::size_t kSequences = 2, kLength = 8, kKept = 3, kWidth = 4;

// Which tokens a layer computes in a pass that triples them, and what comes of all.
class TokenDroppingTest : public ::testing::Test {
 protected:
  TokenDroppingTest() {
    pass_.training = true;
    pass_.batch = {.num_sequences = kSequences, .length = kLength};
    pass_.batch.samples = pass_.int64({40, 41});
    pass_.batch.places = pass_.int32({0, 1, 2, 3, 4, 5, 6, 7});
    std::vector<std::int32_t> positions;
    for (std::size_t token = 0; token < kSequences * kLength; ++token) {
      positions.push_back(static_cast<std::int32_t>(token % kLength));
    }
    pass_.batch.positions = pass_.int32(positions);
    pass_.features.token_dropping = &dropping_;
  }

  Value tripled(Context& context, const Value& x, RandomKey key) {
    return on_kept_tokens(context, {.stream = x}, key,
                          [this](Context& inner, State state) {
                            kept_ = inner.batch.positions.to_host<std::int32_t>(pass_.stream);
                            EXPECT_EQ(inner.batch.length, std::int64_t{kKept});
                            return State{.stream = scale(inner, state.stream, 3)};
                          })
        .stream;
  }
  std::vector<std::int32_t> kept_with(RandomKey key) {
    Context context = pass_.context(nullptr);
    const Shape shape{kSequences * kLength, kWidth};
    tripled(context, context.wrap(Tensor::zeros(pass_.stream, DType::fp64, shape)), key);
    return kept_;
  }

  TokenDropping dropping_{.layers = {1}, .kept = kKept};
  LayerCase pass_;
  std::vector<std::int32_t> kept_;  // positions, of one sequence after another
};

TEST_F(TokenDroppingTest, KeptTokensAreComputedAndTheOthersPassBy) {
  pass_.expect(
      {{"x", {kSequences * kLength, kWidth}}}, {},
      [&](Context& context, const std::map<std::string, Value>& in) {
        return std::vector{tripled(context, in.at("x"), 5)};
      },
      [&](const NamedNumbers& in) {
        Numbers y = in.at("x");
        for (std::size_t k = 0; k < kept_.size(); ++k) {
          const std::size_t token = k / kKept * kLength + as_size(kept_[k]);
          for (std::size_t i = 0; i < kWidth; ++i) y[token * kWidth + i] *= 3;
        }
        return y;
      });
}

TEST_F(TokenDroppingTest, EachSequenceKeepsItsOwnInOrder) {
  const std::vector<std::int32_t> kept = kept_with(5);
  ASSERT_EQ(kept.size(), kSequences * kKept);
  for (std::size_t k = 1; k < kept.size(); ++k) {
    EXPECT_TRUE(k % kKept == 0 || kept[k - 1] < kept[k]);
  }
  EXPECT_EQ(kept_with(5), kept);
  EXPECT_NE(kept_with(6), kept);
  pass_.batch.samples = pass_.int64({41, 40});  // the draw is the sample's, wherever it stands
  std::vector<std::int32_t> other = kept;
  std::ranges::rotate(other, other.begin() + kKept);
  EXPECT_EQ(kept_with(5), other);
}

TEST_F(TokenDroppingTest, AppliesToItsLayersInTraining) {
  EXPECT_TRUE(dropping_.applies(pass_.context(nullptr), 1));
  EXPECT_FALSE(dropping_.applies(pass_.context(nullptr), 0));
  pass_.training = false;
  EXPECT_FALSE(dropping_.applies(pass_.context(nullptr), 1));
  pass_.training = true;
  dropping_.kept = kLength;
  EXPECT_FALSE(dropping_.applies(pass_.context(nullptr), 1));
  dropping_.kept = 0;
  EXPECT_FALSE(dropping_.applies(pass_.context(nullptr), 1));
}

}  // namespace
}  // namespace bloomery::testing
