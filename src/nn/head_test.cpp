// The ends of a model: embeddings, the head of a decoder and that of a task.
#include "nn/head.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/embedding.h"
#include "nn/layer_case.h"
#include "nn/task_head.h"

namespace bloomery::testing {
namespace {

constexpr std::size_t kSequences = 2, kLength = 3, kTokens = kSequences * kLength;
constexpr std::size_t kHidden = 4, kVocabulary = 9;
const std::vector<std::int32_t> kTokenIds{4, 0, 8, 8, 3, 4}, kLabels{0, 8, 8, 3, 4, 7};
const std::vector<std::int32_t> kPositions{0, 1, 2, 0, 1, 0}, kTypes{0, 0, 1, 1, 0, 1};
constexpr double kEpsilon = 0.125;

ModelOptions small() {
  ModelOptions o;
  o.num_layers = 1;
  o.hidden_size = kHidden;
  o.vocabulary = {.size = kVocabulary, .divisible_by = 1};
  o.positions.max_length = kLength;
  o.segments.token_types = 0;
  o.norm.epsilon = static_cast<float>(kEpsilon);
  return o;
}

class Ends : public ::testing::Test {
 protected:
  Ends() {
    layer_.batch = {.num_sequences = kSequences, .length = kLength};
    layer_.batch.tokens = layer_.int32(kTokenIds);
    layer_.batch.positions = layer_.int32(kPositions);
    layer_.batch.places = layer_.int32({0, 1, 2});
    layer_.batch.samples = layer_.int64({5, 6});
  }

  ParameterList collected(const Block& block) const {
    ParameterList parameters;
    block.collect(parameters);
    return parameters;
  }
  LayerCase::Layer run(const Block& block) const {
    return [&block](Context& context, const std::map<std::string, Value>& in) {
      const State state{.stream = in.contains("x") ? in.at("x") : Value()};
      const Value y = block.forward(context, state).stream;
      return y ? std::vector{y} : std::vector<Value>();
    };
  }
  std::shared_ptr<Parameter> weight() const {
    return std::make_shared<Parameter>(make_parameter(
        "table", Box::whole({std::int64_t{kVocabulary}, std::int64_t{kHidden}}), {}, true));
  }

  LayerCase layer_;
  const std::map<std::string, Shape> x_{{"x", {kTokens, kHidden}}};
};

void add_rows(Numbers& y, const Numbers& table, const std::vector<std::int32_t>& rows) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] += table[as_size(rows[i / kHidden]) * kHidden + i % kHidden];
  }
}

TEST_F(Ends, EmbeddingsAreSumsOfRowsOfTheTables) {
  for (const bool types : {false, true}) {
    for (const bool scaled : {false, true}) {
      for (const bool given : {false, true}) {
        ModelOptions options = small();
        options.segments.token_types = types ? 2 : 0;
        options.vocabulary.scaled = scaled;
        layer_.batch.token_types = given && types ? layer_.int32(kTypes) : Tensor();
        const Embedding embedding(options, layer_.mesh, DType::fp64);
        layer_.expect({}, collected(embedding), run(embedding), [&](const NamedNumbers& in) {
          Numbers y(kTokens * kHidden);
          add_rows(y, in.at("embedding.tokens.weight"), kTokenIds);
          add_rows(y, in.at("embedding.positions.weight"), kPositions);
          if (types) {
            add_rows(y, in.at("embedding.token_types.weight"),
                     given ? kTypes : std::vector<std::int32_t>(kTokens));
          }
          for (double& each : y) each *= scaled ? 2 : 1;  // the root of the width
          return y;
        });
      }
    }
  }
}

TEST_F(Ends, SequencesLongerThanTheTableOfPositionsAreAnError) {
  ModelOptions options = small();
  options.positions.max_length = kLength - 1;
  const Embedding embedding(options, layer_.mesh, DType::fp64);
  Context context = layer_.context(nullptr);
  EXPECT_THROW(embedding.forward(context, {}), Error);
}

Numbers logits(const NamedNumbers& in, const HeadExtras& extras) {
  Numbers x = plain_norm(in.at("x"), in.at("final_norm.gain"), &in.at("final_norm.bias"), kEpsilon);
  for (double& each : x) each *= extras.scale;
  return plain_linear(x, in.at("table"), extras.bias ? &in.at("head.bias") : nullptr, kHidden);
}

TEST_F(Ends, HeadsMakeLogitsOfTheRowsThatAreWanted) {
  layer_.learns = false;
  for (const HeadExtras extras : {HeadExtras{}, HeadExtras{.bias = true, .scale = 0.25f}}) {
    for (const bool some : {false, true}) {
      const Head head(small(), layer_.mesh, weight(), 0, extras);
      layer_.batch.output_rows = some ? layer_.int32({4, 1}) : Tensor();
      layer_.expect(x_, collected(head), run(head), [&](const NamedNumbers& in) {
        const Numbers all = logits(in, extras);
        if (!some) return all;
        Numbers two;
        for (const std::size_t row : {4, 1}) {
          for (std::size_t i = 0; i < kVocabulary; ++i) two.push_back(all[row * kVocabulary + i]);
        }
        return two;
      });
    }
  }
}

TEST_F(Ends, HeadsReportTheMeanLossOfTheTokensThatCount) {
  const std::vector<float> mask{1, 0, 1, 1, 0, 1};
  for (const bool masked : {false, true}) {
    layer_.metrics = {};
    const Head head(small(), layer_.mesh, weight(), 0);
    layer_.batch.labels = layer_.int32(kLabels);
    layer_.batch.loss_mask = masked ? Tensor::from_host(layer_.stream, mask, {kTokens}) : Tensor();
    layer_.expect(x_, collected(head), run(head), [&](const NamedNumbers& in) {
      const Numbers all = logits(in, {});
      double loss = 0, count = 0;
      for (std::size_t token = 0; token < kTokens; ++token) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(token * kVocabulary);
        Numbers row(first, first + kVocabulary);
        plain_softmax(row);
        const double weight = masked ? mask[token] : 1;
        loss -= weight * std::log(row[as_size(kLabels[token])]);
        count += weight;
      }
      return Numbers{loss / count};
    });
    EXPECT_EQ(layer_.metrics.entries().front().name, "lm loss");
  }
}

// What a task's head makes of the first token of each sequence.
Numbers scores(const NamedNumbers& in, const std::string& name) {
  const Numbers x =
      plain_norm(in.at("x"), in.at("final_norm.gain"), &in.at("final_norm.bias"), kEpsilon);
  Numbers first;
  for (std::size_t sequence = 0; sequence < kSequences; ++sequence) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(sequence * kLength * kHidden);
    first.insert(first.end(), begin, begin + kHidden);
  }
  Numbers pool = plain_linear(first, in.at("pooler.weight"), &in.at("pooler.bias"), kHidden);
  for (double& each : pool) each = std::tanh(each);
  return plain_linear(pool, in.at(name + ".weight"), &in.at(name + ".bias"), kHidden);
}

TEST_F(Ends, TaskHeadsScoreSequencesByTheirFirstToken) {
  for (const TaskHeadKind kind :
       {TaskHeadKind::classification, TaskHeadKind::regression, TaskHeadKind::multiple_choice}) {
    ModelOptions options = small();
    options.task = {.kind = kind, .classes = 3};
    const TaskHead head(options, layer_.mesh);
    const char* const name =
        kind == TaskHeadKind::multiple_choice ? "multichoice_head" : "classification_head";
    layer_.expect(x_, collected(head), run(head),
                  [&](const NamedNumbers& in) { return scores(in, name); });
  }
}

TEST_F(Ends, TaskHeadsLearnClassesAndNumbers) {
  ModelOptions options = small();
  options.task = {.kind = TaskHeadKind::classification, .classes = 3};
  const TaskHead classes(options, layer_.mesh);
  layer_.batch.classes = layer_.int32({2, 0});
  layer_.expect(x_, collected(classes), run(classes), [&](const NamedNumbers& in) {
    const Numbers all = scores(in, "classification_head");
    Numbers first(all.begin(), all.begin() + 3), second(all.begin() + 3, all.end());
    plain_softmax(first);
    plain_softmax(second);
    return Numbers{-(std::log(first[2]) + std::log(second[0])) / 2};
  });
  layer_.metrics = {};
  layer_.batch.classes = {};
  layer_.batch.scores = Tensor::from_host<float>(layer_.stream, {0.5f, -2}, {2});
  options.task.kind = TaskHeadKind::regression;
  const TaskHead number(options, layer_.mesh);
  layer_.expect(x_, collected(number), run(number), [&](const NamedNumbers& in) {
    const Numbers all = scores(in, "classification_head");
    return Numbers{(std::pow(all[0] - 0.5, 2) + std::pow(all[1] + 2, 2)) / 2};
  });
}

}  // namespace
}  // namespace bloomery::testing
