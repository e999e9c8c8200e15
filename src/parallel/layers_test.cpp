// Each sharded layer on 1, 2 and 4 ranks as threads: initial values are slices of the one-rank
// values, bit for bit; outputs and gradients equal the one-rank layer's.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "comm/threads.h"
#include "harness/op_harness.h"
#include "parallel/parallel_linear.h"
#include "parallel/vocab_embedding.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kTokens = 11;

// Global tensors put together from the parts of all ranks. What several ranks hold must be equal.
class Assembly {
 public:
  void put(const std::string& name, const Box& box, const Tensor& part, Stream& stream) {
    const std::vector<float> local = part.to_host<float>(stream);
    const std::lock_guard lock(mutex_);
    std::vector<double>& whole = wholes_[name];
    whole.resize(static_cast<std::size_t>(box.global.numel()), kUnset);
    int differing = 0;
    for (std::int64_t i = 0; i < box.extent.numel(); ++i) {
      double& place = whole[box.global_index(i)];
      differing += place != kUnset && place != local[i];
      place = local[i];
    }
    EXPECT_EQ(differing, 0) << name << " differs between ranks";
  }
  const std::map<std::string, std::vector<double>>& wholes() const { return wholes_; }

  static constexpr double kUnset = -12345;

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<double>> wholes_;
};

// One rank's side of a test.
struct Rank {
  Mesh& mesh;
  Stream& stream;
  Assembly& assembly;

  Tensor part(const std::string& name, const Box& box) const {
    const RandomKey key = random_key(5, name);
    std::vector<float> values(box.extent.numel());
    for (std::int64_t i = 0; i < box.extent.numel(); ++i) {
      values[i] = static_cast<float>(random_normal(key, box.global_index(i)));
    }
    return Tensor::from_host(stream, values, box.extent);
  }

  void prepare(const ParameterList& parameters) const {
    for (Parameter* p : parameters) {
      p->value = Tensor::empty(stream, DType::fp32, p->local_shape);
      p->grad = Tensor::empty(stream, DType::fp32, p->local_shape);
      initialize(*p, 77, stream);
      assembly.put("value " + p->name, p->box, p->value, stream);
      if (p->init.kind == Init::Kind::zeros) {  // a bias of zero would not be seen
        const Tensor values = part(p->name, p->box);
        stream.copy(p->value.data(), values.data(), values.bytes());
      }
    }
  }

  // Outputs, then gradients for drawn output gradients.
  void check_backward(Tape& tape, const Value& y, const Box& y_box,
                      const ParameterList& parameters) const {
    assembly.put("y", y_box, y.data, stream);
    tape.set_grad(y.slot, part("dy", y_box).reshape(y.shape()));
    tape.backward();
    for (const Parameter* p : parameters) {
      assembly.put("grad " + p->name, p->box, p->grad, stream);
    }
  }

  Box cut(const Shape& shape, int dim) const {
    return Box::whole(shape).split(dim, mesh.coordinate(Axis::tensor), mesh.degree(Axis::tensor));
  }
};

using Body = std::function<void(const Rank&, Context&, Tape&)>;

void run_layer(int num_ranks, DeviceKind kind, Assembly& assembly, const Body& body,
               const std::function<void(Batch&, Stream&)>& fill_batch) {
  run_ranks(num_ranks, [&](int, std::unique_ptr<Communicator> world) {
    Device device({.kind = kind, .num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = num_ranks}, std::move(world));
    Batch batch;
    if (fill_batch) {
      fill_batch(batch, stream);
    }
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    body({mesh, stream, assembly}, context, tape);
    stream.synchronize();
    mesh.host().barrier("end of the layer");  // what the others still read stays alive
  });
}

// `count` names must appear; those that start with "value" must be equal bit for bit.
void expect_equal_to_one_rank(const Body& body, std::size_t count,
                              const std::function<void(Batch&, Stream&)>& fill_batch = {}) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    if (kind == DeviceKind::cuda && num_cuda_devices() == 0) {
      continue;
    }
    Assembly one;
    run_layer(1, kind, one, body, fill_batch);
    EXPECT_EQ(one.wholes().size(), count);
    for (const int num_ranks : {2, 4}) {
      Assembly several;
      run_layer(num_ranks, kind, several, body, fill_batch);
      ASSERT_EQ(several.wholes().size(), count);
      for (const auto& [name, whole] : one.wholes()) {
        const std::vector<double>& assembled = several.wholes().at(name);
        EXPECT_EQ(std::count(assembled.begin(), assembled.end(), Assembly::kUnset), 0) << name;
        if (name.starts_with("value")) {
          EXPECT_EQ(assembled, whole) << name;
        } else {
          EXPECT_LT(relative_error(assembled, whole), 1e-6) << name << ", " << num_ranks;
        }
      }
    }
  }
}

constexpr Init kNormal{Init::Kind::normal, 0.3};

void column_case(const Shape& out_shape, int split_dim, Activation activation) {
  expect_equal_to_one_rank(
      [&](const Rank& rank, Context& context, Tape& tape) {
        const ParallelLinear layer =
            ParallelLinear::column(rank.mesh, "layer", out_shape, split_dim, 10, true, kNormal);
        ParameterList parameters;
        layer.collect(parameters);
        rank.prepare(parameters);
        const Box x_box = Box::whole({kTokens, 10});
        const Value x = context.wrap(rank.part("x", x_box));
        Shape y_shape{kTokens};
        for (int i = 0; i < out_shape.rank(); ++i) {
          y_shape.append(out_shape[i]);
        }
        const Value y = layer(context, x, activation);
        rank.check_backward(tape, y, rank.cut(y_shape, split_dim + 1), parameters);
        rank.assembly.put("dx", x_box, tape.grad(x.slot), rank.stream);
      },
      6);
}

TEST(ColumnParallel, Features) { column_case({12}, 0, Activation::none); }
TEST(ColumnParallel, WithActivation) { column_case({12}, 0, Activation::gelu_tanh); }
TEST(ColumnParallel, GateAndValue) { column_case({2, 8}, 1, Activation::none); }
TEST(ColumnParallel, GroupsOfQueriesKeysAndValues) { column_case({4, 3, 2}, 0, Activation::none); }

TEST(RowParallel, EqualsOneRank) {
  expect_equal_to_one_rank(
      [](const Rank& rank, Context& context, Tape& tape) {
        const ParallelLinear layer = ParallelLinear::row(rank.mesh, "layer", 7, 24, true, kNormal);
        ParameterList parameters;
        layer.collect(parameters);
        rank.prepare(parameters);
        const Box x_box = rank.cut({kTokens, 24}, 1);
        const Value x = context.wrap(rank.part("x", x_box));
        rank.check_backward(tape, layer(context, x), Box::whole({kTokens, 7}), parameters);
        rank.assembly.put("dx", x_box, tape.grad(x.slot), rank.stream);
      },
      6);
}

// Column, activation, row: one reduction forward, one backward.
TEST(ColumnThenRow, EqualsOneRank) {
  expect_equal_to_one_rank(
      [](const Rank& rank, Context& context, Tape& tape) {
        const ParallelLinear up =
            ParallelLinear::column(rank.mesh, "up", {16}, 0, 6, true, kNormal);
        const ParallelLinear down = ParallelLinear::row(rank.mesh, "down", 6, 16, false, kNormal);
        ParameterList parameters;
        up.collect(parameters);
        down.collect(parameters);
        rank.prepare(parameters);
        const Box box = Box::whole({kTokens, 6});
        const Value x = context.wrap(rank.part("x", box));
        const Value y = down(context, up(context, x, Activation::gelu_erf));
        rank.check_backward(tape, y, box, parameters);
        rank.assembly.put("dx", box, tape.grad(x.slot), rank.stream);
      },
      8);
}

void fill_tokens(Batch& batch, Stream& stream) {
  batch.num_sequences = 1;
  batch.length = kTokens;
  batch.tokens =
      Tensor::from_host<std::int32_t>(stream, {0, 12, 3, 4, 5, 12, 6, 11, 3, 3, 8}, {kTokens});
  batch.positions =
      Tensor::from_host<std::int32_t>(stream, {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2}, {kTokens});
  batch.token_types =
      Tensor::from_host<std::int32_t>(stream, {0, 0, 0, 0, 1, 1, 1, 1, 0, 2, 2}, {kTokens});
}

// 13 tokens on 4 ranks in multiples of 2: rows 0..3, 4..7, 8..11, 12 and three of padding. In
// multiples of 5, two ranks have nothing but padding.
TEST(VocabEmbedding, EqualsOneRank) {
  for (const std::int64_t divisible_by : {1, 2, 5}) {
    expect_equal_to_one_rank(
        [=](const Rank& rank, Context& context, Tape& tape) {
          const VocabEmbedding layer(rank.mesh, "embedding",
                                     {.vocabulary = 13,
                                      .divisible_by = divisible_by,
                                      .hidden = 6,
                                      .max_positions = 9,
                                      .num_token_types = 3,
                                      .init = kNormal});
          ParameterList parameters;
          layer.collect(parameters);
          rank.prepare(parameters);
          rank.check_backward(tape, layer(context), Box::whole({kTokens, 6}), parameters);
        },
        7, fill_tokens);
  }
}

TEST(VocabEmbedding, PaddingIsOutsideTheBoxAndZero) {
  run_ranks(4, [](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = 4}, std::move(world));
    const VocabEmbedding layer(
        mesh, "embedding",
        {.vocabulary = 13, .divisible_by = 5, .hidden = 3, .init = {Init::Kind::ones}});
    Parameter& table = *layer.table();
    EXPECT_EQ(layer.first_token(), 5 * rank);
    EXPECT_EQ(table.name, "embedding.tokens.weight");
    EXPECT_EQ(table.local_shape, (Shape{5, 3}));
    EXPECT_EQ(table.box.global, (Shape{13, 3}));
    const std::int64_t rows[] = {5, 5, 3, 0};
    EXPECT_EQ(table.box.extent, (Shape{rows[rank], 3}));
    table.value = Tensor::empty(stream, DType::fp32, table.local_shape);
    initialize(table, 1, stream);
    std::vector<float> expected(15, 0.0f);
    std::fill_n(expected.begin(), rows[rank] * 3, 1.0f);
    EXPECT_EQ(table.value.to_host<float>(stream), expected);
  });
}

TEST(PaddedVocabulary, FollowsTheRule) {
  EXPECT_EQ(padded_vocabulary(50257, 128, 1), 50304);
  EXPECT_EQ(padded_vocabulary(50257, 128, 8), 51200);
  EXPECT_EQ(padded_vocabulary(50304, 128, 1), 50304);
  EXPECT_THROW(padded_vocabulary(0, 128, 1), Error);
  EXPECT_THROW(padded_vocabulary(5, 0, 1), Error);
}

TEST(Layers, RefuseShapesThatTheRanksCannotShare) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    const Mesh mesh({.tensor = 2}, std::move(world));
    EXPECT_THROW(ParallelLinear::column(mesh, "a", {7}, 0, 4, true, {}), Error);
    EXPECT_THROW(ParallelLinear::column(mesh, "a", {2, 7}, 2, 4, true, {}), Error);
    EXPECT_THROW(ParallelLinear::row(mesh, "a", 4, 7, true, {}), Error);
  });
}

TEST(Layers, NameTheirParametersAndSpareBiasesTheDecay) {
  const Mesh mesh = Mesh::single();
  const ParallelLinear column = ParallelLinear::column(mesh, "up", {2, 8}, 1, 4, true, kNormal);
  const ParallelLinear row = ParallelLinear::row(mesh, "down", 4, 8, false, kNormal);
  ParameterList parameters;
  column.collect(parameters);
  row.collect(parameters);
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[0]->name, "up.weight");
  EXPECT_EQ(parameters[0]->box, Box::whole({2, 8, 4}));
  EXPECT_TRUE(parameters[0]->decay);
  EXPECT_EQ(parameters[1]->name, "up.bias");
  EXPECT_EQ(parameters[1]->box, Box::whole({2, 8}));
  EXPECT_FALSE(parameters[1]->decay);
  EXPECT_EQ(parameters[2]->name, "down.weight");
}

}  // namespace
}  // namespace bloomery::testing
