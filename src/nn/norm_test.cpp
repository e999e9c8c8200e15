#include "nn/norm.h"

#include <gtest/gtest.h>

#include "nn/layer_case.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kTokens = 5, kHidden = 12;
constexpr float kEpsilon = 0.125f;  // large enough to be seen

Numbers formula(const NamedNumbers& in, const NormOptions& options) {
  Numbers stream = in.at("stream");
  for (std::size_t i = 0; in.contains("pending") && i < stream.size(); ++i) {
    stream[i] += in.at("pending")[i];
  }
  Numbers gain = in.at("norm.gain");
  for (double& g : gain) g += options.one_plus_gain ? 1 : 0;
  const bool centred = options.kind == NormKind::layer;
  Numbers all = plain_norm(stream, gain, centred ? &in.at("norm.bias") : nullptr, kEpsilon);
  if (in.contains("pending")) {
    all.insert(all.end(), stream.begin(), stream.end());
  }
  return all;
}

TEST(Norm, AddsThePendingBranchAndNormalisesRows) {
  for (const NormOptions options :
       {NormOptions{NormKind::layer, kEpsilon, false}, NormOptions{NormKind::rms, kEpsilon, false},
        NormOptions{NormKind::rms, kEpsilon, true}}) {
    for (const bool has_pending : {false, true}) {
      SCOPED_TRACE(concat(options.kind == NormKind::rms, options.one_plus_gain, has_pending));
      LayerCase layer;
      layer.batch = {.num_sequences = 1, .length = kTokens};
      const Norm norm("norm", kHidden, options, layer.mesh);
      ParameterList parameters;
      norm.collect(parameters);
      std::map<std::string, Shape> inputs{{"stream", {kTokens, kHidden}}};
      if (has_pending) inputs["pending"] = {kTokens, kHidden};
      layer.expect(
          inputs, parameters,
          [&](Context& context, const std::map<std::string, Value>& in) {
            State state{.stream = in.at("stream")};
            if (has_pending) state.pending = in.at("pending");
            std::vector<Value> outputs{norm(context, state)};
            EXPECT_FALSE(state.pending);
            if (has_pending) outputs.push_back(state.stream);
            return outputs;
          },
          [&](const NamedNumbers& in) { return formula(in, options); });
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
