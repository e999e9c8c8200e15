#include "parallel/ring_attention.h"

#include <gtest/gtest.h>

#include "comm/threads.h"
#include "harness/op_harness.h"
#include "parallel/sequence_parts.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 2, kLength = 24, kGroups = 2, kHeads = 4, kHeadDim = 3;
constexpr std::int64_t kWidth = (kHeads + 2 * kGroups) * kHeadDim, kOut = kHeads * kHeadDim;

struct Case {
  const char* name;
  bool causal = true;
  bool documents = false;
  std::int64_t window = 0;
  double dropout = 0;
};

// Which tokens of the sequences a rank holds, in its order.
std::vector<std::int64_t> held(int rank, int ranks) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    const Pieces pieces = ranks > 1 ? ring_pieces(kLength, rank, ranks) : Pieces{{0, kLength}};
    for (const Piece& piece : pieces) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        tokens.push_back(b * kLength + piece.begin + i);
      }
    }
  }
  return tokens;
}

Batch batch_of(Stream& stream, const Case& c, int rank, int ranks) {
  std::vector<std::int32_t> places, begin, end;
  for (const std::int64_t token : held(rank, ranks)) {
    const std::int64_t place = token % kLength, border = token < kLength ? 7 : 16;
    begin.push_back(static_cast<std::int32_t>(place < border ? 0 : border));
    end.push_back(static_cast<std::int32_t>(place < border ? border : kLength));
    places.push_back(static_cast<std::int32_t>(place));
  }
  Batch batch{.num_sequences = kSequences, .length = kLength / ranks};
  batch.samples = Tensor::from_host<std::int64_t>(stream, {17, 5}, {kSequences});
  places.resize(places.size() / kSequences);
  batch.places = Tensor::from_host(stream, places, {batch.length});
  if (c.documents) {
    batch.key_begin = Tensor::from_host(stream, begin, {batch.num_tokens()});
    batch.key_end = Tensor::from_host(stream, end, {batch.num_tokens()});
  }
  if (ranks > 1) {
    Batch whole{.num_sequences = kSequences, .length = kLength};
    std::vector<std::int32_t> of_ring;
    for (int other = 0; other < ranks; ++other) {
      for (const std::int64_t token : held(other, ranks)) {
        if (token < kLength) of_ring.push_back(static_cast<std::int32_t>(token));
      }
    }
    whole.places = Tensor::from_host(stream, of_ring, {kLength});
    batch.whole = std::make_shared<const Batch>(whole);
  }
  return batch;
}

template <class Real>
Results run_case(const Case& c, int num_ranks, bool beside) {
  std::vector<double> out(kSequences * kLength * kOut), grad(kSequences * kLength * kWidth);
  run_ranks(num_ranks, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device), communication(device);
    Mesh mesh({.context = num_ranks, .ring = num_ranks}, std::move(world));
    const Batch batch = batch_of(stream, c, rank, num_ranks);
    const std::vector<std::int64_t> tokens = held(rank, num_ranks);
    std::vector<Real> x, seed;
    for (const std::int64_t token : tokens) {
      for (std::int64_t i = 0; i < kWidth; ++i) {
        x.push_back(
            static_cast<Real>(random_normal(1, static_cast<std::uint64_t>(token * kWidth + i))));
      }
      for (std::int64_t i = 0; i < kOut; ++i) {
        seed.push_back(
            static_cast<Real>(random_normal(2, static_cast<std::uint64_t>(token * kOut + i))));
      }
    }
    const auto rows = static_cast<std::int64_t>(tokens.size());
    Tape tape(stream);
    Context context{
        .stream = stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = true};
    context.communication = beside ? &communication : nullptr;
    const Value qkv = tape.value(Tensor::from_host(stream, x, {rows, kWidth}));
    const AttentionOptions options{
        .num_heads = kHeads,
        .num_groups = kGroups,
        .head_dim = kHeadDim,
        .scale = 0.6f,
        .causal = c.causal,
        .window = c.window,
        .dropout = {.probability = static_cast<float>(c.dropout), .key = 99}};
    const Value y =
        num_ranks > 1 ? ring_attention(context, qkv, options) : attention(context, qkv, options);
    tape.set_grad(y.slot, Tensor::from_host(stream, seed, {rows, kOut}));
    tape.backward();
    const std::vector<Real> values = y.data.template to_host<Real>(stream);
    const std::vector<Real> grads = qkv.slot->grad.template to_host<Real>(stream);
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      const auto token = static_cast<std::size_t>(tokens[r]);
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(r * kOut), kOut,
                  out.begin() + static_cast<std::ptrdiff_t>(token * kOut));
      std::copy_n(grads.begin() + static_cast<std::ptrdiff_t>(r * kWidth), kWidth,
                  grad.begin() + static_cast<std::ptrdiff_t>(token * kWidth));
    }
  });
  return {{"out", out}, {"grad.qkv", grad}};
}

constexpr Case kCases[] = {{.name = "causal"},
                           {.name = "bidirectional", .causal = false},
                           {.name = "documents", .documents = true},
                           {.name = "padding", .causal = false, .documents = true},
                           {.name = "window", .window = 5},
                           {.name = "window of documents", .documents = true, .window = 9},
                           {.name = "dropout", .dropout = 0.3},
                           {.name = "all", .documents = true, .window = 6, .dropout = 0.2}};

TEST(RingAttention, EqualsAttentionOfOneRank) {
  for (const Case& c : kCases) {
    const Results one = run_case<double>(c, 1, false);
    for (const int ranks : {2, 3, 4, 6}) {
      for (const auto& [tensor, values] : run_case<double>(c, ranks, ranks % 2 == 0)) {
        EXPECT_LE(relative_error(values, one.at(tensor)), 1e-13)
            << c.name << ", " << ranks << " ranks, " << tensor;
      }
    }
  }
}

TEST(RingAttention, EqualsItInSinglePrecision) {
  for (const Case& c : kCases) {
    const Results one = run_case<double>(c, 1, false);
    for (const auto& [tensor, values] : run_case<float>(c, 3, true)) {
      EXPECT_LE(relative_error(values, one.at(tensor)), 1e-6) << c.name << ", " << tensor;
    }
  }
}

TEST(RingPieces, CoverASequenceAndAreBalanced) {
  for (const int ranks : {2, 3, 8}) {
    std::vector<int> seen(48);
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t places = 0;
      for (const Piece& piece : ring_pieces(48, rank, ranks)) {
        for (std::int64_t i = piece.begin; i < piece.begin + piece.count; ++i) {
          ++seen[static_cast<std::size_t>(i)];
          places += i;
        }
      }
      EXPECT_EQ(places, 48 * 47 / 2 / ranks);
    }
    EXPECT_EQ(seen, std::vector<int>(48, 1));
  }
}

}  // namespace
}  // namespace bloomery::testing
