// Every layout trains like one rank: gradients and weights after a step of plain SGD tensor by
// tensor, losses and gradient norms over ten steps of Adam. By default a set of layouts in which
// every two choices meet; all valid ones with BLOOMERY_ALL_LAYOUTS=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "models/family.h"
#include "train/parity/layout_text.h"
#include "train/parity/parity.h"

namespace bloomery::testing {
namespace {

// Qwen3 has windows in some layers, and norms of heads.
constexpr std::array kShapes = {"gpt",   "gpt untied", "llama",
                                "qwen3", "bert",       "bert of one segment"};
constexpr std::array kTensor = {"", "tp2", "tp2sp", "tp4", "tp4sp"};
constexpr std::array kSequence = {"", "ul2", "cp2", "ul2cp2"};
constexpr std::array kPipeline = {"", "pp2", "pp4", "pp2gpipe", "pp2zb", "pp4zb", "pp2v2"};
constexpr std::array kData = {"", "dp2", "dp4"};
constexpr std::array kZero = {"", "z1", "z2", "z3"};
constexpr int kFactors = 6, kMostRanks = 8;

using Choice = std::array<int, kFactors>;  // a place in each list
using Pair = std::array<int, 4>;           // two factors and their choices

Layout layout_of(const Choice& c) {
  return parse_layout(concat(
      kTensor[static_cast<std::size_t>(c[1])], "+", kSequence[static_cast<std::size_t>(c[2])], "+",
      kPipeline[static_cast<std::size_t>(c[3])], "+", kData[static_cast<std::size_t>(c[4])], "+",
      kZero[static_cast<std::size_t>(c[5])]));
}

RankOptions options_of(std::size_t shape) {
  RankOptions o;
  o.model.family = shape < 2 ? "gpt" : shape < 4 ? kShapes[shape] : "bert";
  if (const auto defaults = find_family(o.model.family).defaults) {
    defaults(o.model);
  }
  o.model.num_layers = 4;
  o.model.hidden_size = 32;
  o.model.attention.num_heads = 8;
  o.model.attention.num_groups = shape == 2 || shape == 3 ? 4 : 8;
  if (shape == 3) {
    o.model.attention.window = 5;
    o.model.attention.window_layers = {1, 0, 0, 1};
  }
  o.model.vocabulary.size = 93;
  o.model.vocabulary.divisible_by = 8;
  o.model.vocabulary.untied = 1 <= shape && shape <= 3;
  o.model.positions.max_length = 32;
  o.model.attention.dropout = o.model.residual.dropout = 0.1f;
  o.model.init.std = 0.1;
  if (shape == 5) {
    o.model.segments.binary_head = false;
    o.model.residual.after_norm = o.model.residual.embedding_dropout_after_norm = true;
  }
  o.device = {.num_threads = 1, .poison = true};
  o.optimizer.schedule.learning_rate = 1e-3;
  o.optimizer.schedule.decay_style = DecayStyle::constant;
  o.optimizer.schedule.weight_decay = 0.1;
  return o;
}

std::vector<Choice> valid_choices() {
  std::vector<Choice> all;
  const Choice ends = {kShapes.size(),   kTensor.size(), kSequence.size(),
                       kPipeline.size(), kData.size(),   kZero.size()};
  for (Choice c{}; c[0] < ends[0];) {
    const Layout layout = layout_of(c);
    const int ranks = layout.degrees.num_ranks();
    const bool shards = layout.degrees.data * layout.degrees.context > 1;
    if (1 < ranks && ranks <= kMostRanks && (shards || c[5] == 0) &&
        problems(options_of(static_cast<std::size_t>(c[0])).model, layout.degrees).empty()) {
      all.push_back(c);
    }
    for (int i = kFactors - 1;
         i >= 0 && (++c[static_cast<std::size_t>(i)] == ends[static_cast<std::size_t>(i)]) && i > 0;
         --i) {
      c[static_cast<std::size_t>(i)] = 0;
    }
  }
  return all;
}

std::set<Pair> pairs_of(const Choice& c) {
  std::set<Pair> pairs;
  for (int i = 0; i < kFactors; ++i) {
    for (int j = i + 1; j < kFactors; ++j) {
      pairs.insert({i, c[static_cast<std::size_t>(i)], j, c[static_cast<std::size_t>(j)]});
    }
  }
  return pairs;
}

// Takes what has most pairs that were not met, until all were.
std::vector<Choice> covering_choices(const std::vector<Choice>& all) {
  std::set<Pair> left;
  for (const Choice& c : all) {
    left.merge(pairs_of(c));
  }
  std::vector<Choice> chosen;
  while (!left.empty()) {
    const auto gain = [&](const Choice& c) {
      return std::ranges::count_if(pairs_of(c), [&](const Pair& p) { return left.contains(p); });
    };
    chosen.push_back(*std::ranges::max_element(all, {}, gain));
    for (const Pair& pair : pairs_of(chosen.back())) {
      left.erase(pair);
    }
  }
  return chosen;
}

constexpr ParityWork kWork{.micro_batches = 8,
                           .sequences = 2,
                           .length = 16,
                           .vocabulary = 93,
                           .steps = 10,
                           .tensors = false};

struct Runs {
  ParityRun adam, sgd;
};

Runs train(RankOptions options) {
  Runs runs;
  runs.adam = run_steps(options, kWork);
  options.optimizer.rule = Momentum{.momentum = 0};
  options.optimizer.schedule.learning_rate = 0.1;
  ParityWork one = kWork;
  one.steps = 1;
  one.tensors = true;
  runs.sgd = run_steps(options, one);
  return runs;
}

TEST(LayoutTable, EveryLayoutTrainsLikeOneRank) {
  const std::vector<Choice> all = valid_choices();
  const bool exhaustive = std::getenv("BLOOMERY_ALL_LAYOUTS") != nullptr;
  const std::vector<Choice> choices = exhaustive ? all : covering_choices(all);
  EXPECT_LE(choices.size(), exhaustive ? all.size() : 60u);
  std::array<Runs, kShapes.size()> reference;
  for (std::size_t shape = 0; shape < kShapes.size(); ++shape) {
    reference[shape] = train(options_of(shape));
  }
  for (const Choice& choice : choices) {
    const auto shape = static_cast<std::size_t>(choice[0]);
    RankOptions options = options_of(shape);
    options.layout = layout_of(choice);
    const std::string name = concat(kShapes[shape], " ", to_text(options.layout));
    SCOPED_TRACE(name);
    const Runs runs = train(options);
    EXPECT_EQ(first_outside(compare(runs.sgd, reference[shape].sgd), 1e-5), "");
    EXPECT_EQ(first_outside(compare(runs.adam, reference[shape].adam), 1e-5), "");
  }
  RecordProperty("layouts", static_cast<int>(choices.size()));
  std::printf("%zu of %zu layouts\n", choices.size(), all.size());
}

// The same layout gives the same bits twice.
TEST(LayoutTable, IsRepeatable) {
  for (const char* text : {"tp2sp+ul2+pp2zb", "dp2z3+pp2v2", "tp2+dp4z2"}) {
    RankOptions options = options_of(2);
    options.layout = parse_layout(text);
    const Runs a = train(options), b = train(options);
    EXPECT_EQ(first_outside(compare(a.sgd, b.sgd), 0), "") << text;
    EXPECT_EQ(first_outside(compare(a.adam, b.adam), 0), "") << text;
  }
}

// And a mistake is found: dropout that one rank alone would draw otherwise.
TEST(LayoutTable, FindsAndNamesADifference) {
  RankOptions options = options_of(0);
  ParityWork work = kWork;
  work.steps = 2;
  work.tensors = true;
  const ParityRun a = run_steps(options, work);
  ParityRun b = a;
  b[1].gradients.at("blocks.2.mlp.up.weight")[17] *= 1.5f;
  const std::string found = first_outside(compare(b, a), 1e-5);
  EXPECT_NE(found.find("step 2: the gradient of blocks.2.mlp.up.weight differs"), found.npos)
      << found;
}

}  // namespace
}  // namespace bloomery::testing
