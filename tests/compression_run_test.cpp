// Layers with few bits and layers that are dropped, through the program: runs that go on bit for
// bit, the numbers of one rank under other layouts, and what users may get wrong.
#include <cmath>
#include <set>

#include "run_case.h"

namespace bloomery {
namespace {

constexpr const char* kGrids =
    R"("different_groups": {"all": {"params": PARAMS, "modules": ["encoder.layers"]}}})";

class CompressionRun : public RunCase {
 protected:
  // A DeepSpeed configuration, and the flags that read it.
  std::string configured(const std::string& name, const std::string& text) const {
    std::ofstream(at(name + ".json")) << text;
    return concat(" --deepspeed --deepspeed_config ", at(name + ".json"), " ");
  }
  static std::string grids(const std::string& shared, const std::string& parameters) {
    std::string groups = kGrids;
    groups.replace(groups.find("PARAMS"), 6, parameters);
    return concat(R"({"shared_parameters": {"enabled": true, )", shared, "}, ", groups);
  }
  std::string compression(const std::string& name, const std::string& precision = "") const {
    return configured(
        name, concat(R"({"train_batch_size": 8, "gradient_clipping": 1.0,)", precision,
                     R"("compression_training": {"weight_quantization": )",
                     grids(R"("schedule_offset": 2, "quantize_groups": 16,
                              "quantization_type": "symmetric", "rounding": "nearest")",
                           R"({"start_bits": 8, "target_bits": 5, "quantization_period": 1})"),
                     R"(, "activation_quantization": )",
                     grids(R"("schedule_offset": 3, "quantization_type": "asymmetric",
                              "range_calibration": "static")",
                           R"({"bits": 8})"),
                     "}}"));
  }
};

TEST_F(CompressionRun, WeightsEndOnTheirGridsAndTheRunGoesOnBitForBit) {
  const std::string flags = compression("few");
  const std::string log = goes_on("few", flags);
  EXPECT_NE(log.find("on grids of 5 bits"), std::string::npos);
  const std::vector<float> all = weights("few");
  const std::size_t size = all.size() / 16;  // of a group
  for (std::size_t group = 0; group < 16; ++group) {
    const std::set<float> found(all.begin() + static_cast<std::ptrdiff_t>(group * size),
                                all.begin() + static_cast<std::ptrdiff_t>((group + 1) * size));
    EXPECT_LE(found.size(), 32u);
    EXPECT_GT(found.size(), 8u);
  }
  goes_on("few-2", compression("half", R"("bf16": {"enabled": true},)") +
                       "--ranks-as-threads 4 --tensor-model-parallel-size 2 --sequence-parallel "
                       "--checkpoint-activations --zero-stage 3");
  same_losses(log,
              {"--ranks-as-threads 4 --tensor-model-parallel-size 2 "
               "--pipeline-model-parallel-size 2",
               "--ranks-as-threads 4 --ds-sequence-parallel-size 2 --zero-stage 1"},
              flags, 1e-3);
  // What ended is evaluated as it ended, and not rounded again.
  const std::string again = train(flags + " --skip-train --train-iters 10 --load " + at("few"));
  const std::vector<double> before = numbers(log, "lm loss value: ");
  EXPECT_NEAR(numbers(again, "lm loss value: ").back(), before.back(), 1e-6 * before.back());
}

TEST_F(CompressionRun, LayersAreDroppedAndTheRunGoesOnBitForBit) {
  const std::string flags = configured("pld", R"({"train_batch_size": 8, "gradient_clipping": 1.0,
      "progressive_layer_drop": {"enabled": true, "theta": 0.2, "gamma": 1.0}})");
  const std::string log = goes_on("dropped", flags);
  const std::vector<double> losses = numbers(log, "lm loss: ");
  const std::vector<double> whole =
      numbers(train(configured("whole", R"({"train_batch_size": 8, "gradient_clipping": 1.0})") +
                    " --train-iters 10"),
              "lm loss: ");
  ASSERT_EQ(losses.size(), whole.size());
  EXPECT_EQ(losses[0], whole[0]);  // DeepSpeed's first two steps drop nothing
  EXPECT_EQ(losses[1], whole[1]);
  EXPECT_NE(losses[9], whole[9]);
  goes_on("dropped-2", flags + "--ranks-as-threads 2 --zero-stage 3 --checkpoint-activations");
  same_losses(log,
              {"--ranks-as-threads 2 --pipeline-model-parallel-size 2",
               "--ranks-as-threads 4 --tensor-model-parallel-size 2 --context-parallel-size 2"},
              flags);
}

TEST_F(CompressionRun, SaysWhatIsWrong) {
  const auto refuses = [&](const std::string& json, const std::string& more,
                           const std::string& message) {
    const std::string log = train(configured("wrong", json) + more + " --train-iters 1", kBadInput);
    EXPECT_NE(log.find(message), std::string::npos) << log;
  };
  const auto weights_with = [](const std::string& shared, const std::string& parameters) {
    return concat(R"({"compression_training": {"weight_quantization": )", grids(shared, parameters),
                  "}}");
  };
  const std::string bits = R"({"start_bits": 8, "target_bits": 4})";
  refuses(weights_with(R"("quantize_groups": 48)", bits), "", "groups cannot divide equally");
  refuses(weights_with(R"("quantize_groups": 16)", R"({"start_bits": 8, "target_bits": 2})"), "",
          "target_bits is 2, not from 3 to 16");
  refuses(weights_with(R"("rounding": "stochastic")", bits), "", "rounding");
  refuses(weights_with(R"("quantize_groups": 16)", bits), "--cpu-optimizer", "on the device");
  refuses(R"({"compression_training": {"activation_quantization": )" +
              grids(R"("range_calibration": "dynamic")", R"({"bits": 8})") + "}}",
          "", "must be \"static\"");
  refuses(R"({"compression_training": {"head_pruning": {"shared_parameters": {"enabled": true}}}})",
          "", "pruning is not supported");
  refuses(
      R"({"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true},
              "different_groups": {"a": {"params": {"start_bits": 8, "target_bits": 4},
              "modules": ["transformer.h"]}}}}})",
      "", "is in the name of no linear layer");
  refuses(R"({"progressive_layer_drop": {"enabled": true, "theta": 0}})", "", "theta");
}

}  // namespace
}  // namespace bloomery
