// What a GPT is made of: initial values, the dtype of the residual stream, and weights that may
// move between forward and backward. Its numbers are compared with PyTorch in tests/.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "autograd/metrics.h"
#include "models/model.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 2, kLength = 12, kTokens = kSequences * kLength;
constexpr std::int64_t kVocabulary = 93, kHidden = 64;

// No two sizes are equal, so that fans cannot be confused.
ModelOptions small(bool gated) {
  ModelOptions o;
  o.num_layers = 3;
  o.hidden_size = kHidden;
  o.attention.num_heads = 4;
  o.attention.num_groups = 2;
  o.attention.head_dim = 24;
  o.mlp.ffn = 112;
  o.vocabulary.size = kVocabulary;
  o.vocabulary.divisible_by = 16;
  o.positions.max_length = 40;
  o.mlp.kind = gated ? MlpKind::geglu_tanh : MlpKind::gelu_tanh;
  o.vocabulary.untied = true;
  o.init.std = 0.05;
  return o;
}

// Every matrix of small(): fan-in, fan-out, and whether it ends a branch.
struct Matrix {
  std::int64_t fan_in, fan_out;
  bool ends_branch = false;
};
std::map<std::string, Matrix> matrices(bool gated) {
  std::map<std::string, Matrix> all = {{"embedding.tokens.weight", {kVocabulary, kHidden}},
                                       {"embedding.positions.weight", {40, kHidden}},
                                       {"head.weight", {kVocabulary, kHidden}}};
  for (const std::string block : {"blocks.0.", "blocks.1.", "blocks.2."}) {
    all[block + "attention.qkv.weight"] = {kHidden, (4 + 2 + 2) * 24};
    all[block + "attention.projection.weight"] = {4 * 24, kHidden, true};
    all[block + "mlp.up.weight"] = {kHidden, gated ? 224 : 112};
    all[block + "mlp.down.weight"] = {112, kHidden, true};
  }
  return all;
}

void check_init(const Init& init, Init::Kind kind, double scale, const std::string& name) {
  EXPECT_EQ(init.kind, kind) << name;
  EXPECT_DOUBLE_EQ(init.scale, scale) << name;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Megatron's rules: normal(0, std), the products that end a branch normal(0, std / sqrt(2 layers));
// or Xavier's uniform rule for all of them.
TEST(GptInit, EveryParameterHasItsDistribution) {
  const Mesh mesh = Mesh::single();
  for (const bool xavier : {false, true}) {
    for (const bool gated : {false, true}) {
      ModelOptions options = small(gated);
      options.init.xavier = xavier;
      Model model(options, mesh, DType::fp32);
      std::map<std::string, Matrix> expected = matrices(gated);
      for (const Parameter* p : model.parameters()) {
        if (const auto found = expected.find(p->name); found != expected.end()) {
          const Matrix m = found->second;
          expected.erase(found);
          if (xavier) {
            check_init(p->init, Init::Kind::uniform,
                       std::sqrt(6.0 / static_cast<double>(m.fan_in + m.fan_out)), p->name);
          } else {
            check_init(p->init, Init::Kind::normal, m.ends_branch ? 0.05 / std::sqrt(6.0) : 0.05,
                       p->name);
          }
        } else if (ends_with(p->name, ".gain")) {
          check_init(p->init, Init::Kind::ones, 0, p->name);
        } else {
          EXPECT_TRUE(ends_with(p->name, ".bias")) << p->name;
          check_init(p->init, Init::Kind::zeros, 0, p->name);
        }
      }
      EXPECT_TRUE(expected.empty()) << "no parameter " << expected.begin()->first;
    }
  }
}

struct Moments {
  double mean = 0, deviation = 0, kurtosis = 0, largest = 0;
};
Moments moments(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  Moments m;
  m.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  double squares = 0, fourths = 0;
  for (const double x : numbers) {
    const double square = (x - m.mean) * (x - m.mean);
    squares += square;
    fourths += square * square;
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(squares / count);
  m.kurtosis = fourths / count / std::pow(m.deviation, 4);
  return m;
}

// The numbers themselves, each statistic within five of its standard errors. Kurtosis tells the
// kinds apart: 3 for normal, 1.8 for uniform.
TEST(GptInit, InitialNumbersFollowTheDistribution) {
  const Mesh mesh = Mesh::single();
  ThreadPool pool(1);
  for (const bool xavier : {false, true}) {
    ModelOptions options = small(true);
    options.init.xavier = xavier;
    Model model(options, mesh, DType::fp32);
    const std::map<std::string, Matrix> known = matrices(true);
    for (const Parameter* p : model.parameters()) {
      if (known.count(p->name) == 0) {
        continue;
      }
      const Matrix m = known.at(p->name);
      std::vector<double> numbers(static_cast<std::size_t>(p->box.extent.numel()));
      initial_numbers(*p, 1234, pool, std::span(numbers));
      const Moments found = moments(numbers);
      const double deviation = xavier ? std::sqrt(2.0 / static_cast<double>(m.fan_in + m.fan_out))
                                      : 0.05 / (m.ends_branch ? std::sqrt(6.0) : 1.0);
      const double root = std::sqrt(static_cast<double>(numbers.size()));
      EXPECT_NEAR(found.mean, 0, 5 * deviation / root) << p->name;
      EXPECT_NEAR(found.deviation, deviation, 5 * deviation / (root * std::sqrt(2.0))) << p->name;
      EXPECT_NEAR(found.kurtosis, xavier ? 1.8 : 3.0, 5 * std::sqrt(24.0) / root) << p->name;
      if (xavier) {
        EXPECT_LE(found.largest, p->init.scale) << p->name;
      }
    }
  }
}

class GptStep : public ::testing::Test {
 protected:
  GptStep() {
    std::vector<std::int32_t> tokens(kTokens), labels(kTokens), positions(kTokens);
    for (std::int64_t i = 0; i < kTokens; ++i) {
      tokens[i] = static_cast<std::int32_t>(i * 37 % kVocabulary);
      labels[i] = static_cast<std::int32_t>((i + 1) * 37 % kVocabulary);
      positions[i] = static_cast<std::int32_t>(i % kLength);
    }
    batch.num_sequences = kSequences;
    batch.length = kLength;
    batch.tokens = Tensor::from_host(stream, tokens, {kTokens});
    batch.labels = Tensor::from_host(stream, labels, {kTokens});
    batch.positions = Tensor::from_host(stream, positions, {kTokens});
    batch.samples = Tensor::from_host(stream, std::vector<std::int64_t>{5, 6}, {kSequences});
    positions.resize(kLength);
    batch.places = Tensor::from_host(stream, positions, {kLength});
  }

  // Every parameter in memory of its own.
  void fill(Model& model, DType dtype) {
    for (Parameter* p : model.parameters()) {
      p->value = Tensor::empty(stream, dtype, p->local_shape);
      p->grad = Tensor::empty(stream, accumulation_dtype(dtype), p->local_shape);
      initialize(*p, 1234, stream);
    }
  }

  void compute_loss(const Model& model, Tape& tape, const RecomputeOptions& recompute = {}) {
    Metrics metrics;
    Context context{.stream = stream,
                    .mesh = mesh,
                    .batch = batch,
                    .tape = &tape,
                    .training = true,
                    .metrics = &metrics};
    model.forward(context, {}, recompute);
  }

  Device device{DeviceOptions{.num_threads = 2, .poison = true}};
  Stream stream{device};
  Mesh mesh = Mesh::single();
  Batch batch;
};

// Bytes that the entries of an op keep, in order.
std::vector<std::size_t> saved_by(const Tape& tape, const std::string& op) {
  std::vector<std::size_t> bytes;
  std::istringstream lines(tape.describe());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(op + " ", 0) == 0) {
      bytes.push_back(std::stoull(line.substr(line.rfind(' '))));
    }
  }
  return bytes;
}

// A norm keeps the stream that it normalised, and a mean and a deviation per token in fp32; a
// recomputed segment keeps the stream that entered it.
TEST_F(GptStep, TheResidualStreamIsFp32WhereAskedFor) {
  for (const auto& [dtype, fp32_residual, size] :
       {std::tuple{DType::bf16, false, 2}, std::tuple{DType::bf16, true, 4},
        std::tuple{DType::fp16, true, 4}, std::tuple{DType::fp32, false, 4}}) {
    for (const bool post_norm : {false, true}) {
      ModelOptions options = small(false);
      options.residual.fp32 = fp32_residual;
      options.residual.after_norm = post_norm;
      const std::size_t stream_bytes = static_cast<std::size_t>(kTokens * kHidden * size);
      const std::size_t statistics_bytes = kTokens * 2 * sizeof(float);
      {
        Model model(options, mesh, dtype);
        fill(model, dtype);
        Tape tape(stream);
        compute_loss(model, tape);
        EXPECT_EQ(saved_by(tape, "layer_norm"),
                  std::vector<std::size_t>(7, stream_bytes + statistics_bytes))
            << dtype << fp32_residual << post_norm;
      }
      Model model(options, mesh, dtype);
      fill(model, dtype);
      Tape tape(stream);
      compute_loss(model, tape, {RecomputeOptions::Method::uniform, 1});
      EXPECT_EQ(saved_by(tape, "recompute"), std::vector<std::size_t>(3, stream_bytes))
          << dtype << fp32_residual << post_norm;
    }
  }
}

// The rule that entries hold the Parameter and never its tensor, for every op of the model: after
// forward all weights are released, which poisons their memory, and backward finds them elsewhere.
class MovingWeights : public GptStep {
 protected:
  void move(const ParameterList& parameters) {
    std::vector<Tensor> copies;
    for (const Parameter* p : parameters) {
      copies.push_back(Tensor::empty(stream, p->value.dtype(), p->value.shape()));
      stream.copy(copies.back().data(), p->value.data(), p->value.bytes());
    }
    for (Parameter* p : parameters) {
      const std::weak_ptr<Storage> old = p->value.storage();
      p->value = {};
      EXPECT_TRUE(old.expired()) << "the tape keeps " << p->name;
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
      parameters[i]->value = copies[i];
    }
  }

  std::vector<std::vector<float>> gradients(const ModelOptions& options, DType dtype, bool moved,
                                            const RecomputeOptions& recompute) {
    Model model(options, mesh, dtype);
    fill(model, dtype);
    Tape tape(stream);
    compute_loss(model, tape, recompute);
    if (moved) {
      move(model.parameters());
    }
    tape.backward();
    std::vector<std::vector<float>> all;
    for (const Parameter* p : model.parameters()) {
      all.push_back(p->grad.to_host<float>(stream));
    }
    return all;
  }
};

TEST_F(MovingWeights, ChangeNoBitOfTheGradients) {
  ModelOptions gpt = small(false);
  gpt.vocabulary.untied = false;
  gpt.residual.dropout = gpt.attention.dropout = 0.1f;
  ModelOptions llama = small(true);
  llama.positions.rotary = true;
  llama.norm.kind = NormKind::rms;
  llama.mlp.kind = MlpKind::swiglu;
  llama.bias = false;
  for (const ModelOptions& options : {gpt, llama}) {
    for (const auto method : {RecomputeOptions::Method::none, RecomputeOptions::Method::uniform}) {
      for (const DType dtype : {DType::fp32, DType::bf16}) {
        EXPECT_EQ(gradients(options, dtype, true, {method}),
                  gradients(options, dtype, false, {method}))
            << dtype;
      }
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
