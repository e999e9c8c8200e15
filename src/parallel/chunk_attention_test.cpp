#include "parallel/chunk_attention.h"

#include <gtest/gtest.h>

#include <numeric>

#include "harness/op_harness.h"
#include "parallel/sequence_chunks.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 2, kLength = 23, kGroups = 2, kHeads = 4, kHeadDim = 3;
constexpr std::int64_t kWidth = (kHeads + 2 * kGroups) * kHeadDim, kOut = kHeads * kHeadDim;

struct Case {
  const char* name;
  bool documents = false;
  std::int64_t window = 0;
  double dropout = 0;
};

Batch batch_of(Stream& stream, const Case& c) {
  std::vector<std::int32_t> places(kLength), begin, end;
  std::iota(places.begin(), places.end(), 0);
  for (std::int64_t t = 0; t < kSequences * kLength; ++t) {
    const std::int64_t place = t % kLength, border = t < kLength ? 7 : 16;
    begin.push_back(static_cast<std::int32_t>(place < border ? 0 : border));
    end.push_back(static_cast<std::int32_t>(place < border ? border : kLength));
  }
  Batch batch;
  batch.num_sequences = kSequences;
  batch.length = kLength;
  batch.samples = Tensor::from_host<std::int64_t>(stream, {17, 5}, {kSequences});
  batch.places = Tensor::from_host(stream, places, {kLength});
  if (c.documents) {
    batch.key_begin = Tensor::from_host(stream, begin, {kSequences * kLength});
    batch.key_end = Tensor::from_host(stream, end, {kSequences * kLength});
  }
  return batch;
}

template <class Real>
std::vector<Real> numbers(std::uint64_t key, std::int64_t count) {
  std::vector<Real> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<Real>(random_normal(key, static_cast<std::uint64_t>(i))));
  }
  return all;
}

// Attention of whole sequences, and of their chunks as the passes of a layer call it.
template <class Real>
class Attending {
 public:
  explicit Attending(const Case& c)
      : device_({.num_threads = 1, .poison = true}),
        stream_(device_),
        host_(device_),
        copies_(device_, StreamMode::queued),
        offload_pool_(stream_, host_, copies_),
        mesh_(Mesh::single()),
        whole_(batch_of(stream_, c)),
        options_{.num_heads = kHeads,
                 .num_groups = kGroups,
                 .head_dim = kHeadDim,
                 .scale = 0.6f,
                 .window = c.window,
                 .dropout = {.probability = static_cast<float>(c.dropout), .key = 99}},
        x_(Tensor::from_host(stream_, numbers<Real>(1, kTokens * kWidth), {kTokens, kWidth})),
        seed_(Tensor::from_host(stream_, numbers<Real>(2, kTokens * kOut), {kTokens, kOut})),
        out_(Tensor::empty(stream_, x_.dtype(), seed_.shape())),
        grad_(Tensor::empty(stream_, x_.dtype(), x_.shape())) {}

  Results whole() {
    Tape tape(stream_);
    Context context = context_of(whole_, &tape);
    const Value qkv = tape.value(x_);
    const Value y = attention(context, qkv, options_);
    tape.set_grad(y.slot, seed_);
    tape.backward();
    copy(y.data, out_);
    copy(qkv.slot->grad, grad_);
    return results();
  }

  Results in_chunks(std::int64_t length, bool on_host) {
    for (std::int64_t sequence = 0; sequence < kSequences; ++sequence) {
      run_sequence(sequence, chunk_pieces(kLength, length, 0, 1),
                   on_host ? &offload_pool_ : nullptr);
    }
    return results();
  }

 private:
  Context context_of(const Batch& batch, Tape* tape) {
    return {.stream = stream_, .mesh = mesh_, .batch = batch, .tape = tape, .training = true};
  }
  void copy(const Tensor& from, const Tensor& to) {
    stream_.copy(to.data(), from.data(), to.bytes());
  }

  // All chunks forward; then from the last to the first each again and its gradients, with keys
  // that were kept before.
  void run_sequence(std::int64_t sequence, const Pieces& pieces, OffloadPool* offload_pool) {
    std::vector<std::int64_t> ends;
    std::vector<Batch> batches;
    for (const Piece& piece : pieces) {
      ends.push_back(piece.begin + piece.count);
      batches.push_back(piece_of(whole_, sequence, piece));
    }
    KeysOfChunks forward(stream_, offload_pool, ends), keys(stream_, offload_pool, ends);
    const auto rows = [&](const Tensor& of, std::size_t chunk) {
      const std::int64_t first = sequence * kLength + pieces[chunk].begin;
      return of.slice(first, first + pieces[chunk].count);
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Context context = context_of(batches[i], nullptr);
      const Value qkv{rows(x_, i), nullptr};
      const auto number = static_cast<std::int64_t>(i);
      copy(chunk_attention(context, qkv, options_, forward, number).data, rows(out_, i));
      keep_keys(context, qkv, options_, keys, number);
    }
    for (std::size_t i = pieces.size(); i-- > 0;) {
      Tape tape(stream_);
      Context context = context_of(batches[i], &tape);
      const Value qkv = tape.value(rows(x_, i));
      const Value y = chunk_attention(context, qkv, options_, keys, static_cast<std::int64_t>(i));
      tape.set_grad(y.slot, rows(seed_, i));
      tape.backward();
      copy(qkv.slot->grad, rows(grad_, i));
    }
  }

  Results results() {
    copies_.synchronize();  // which ends after the shelf
    const auto doubles = [&](const Tensor& of) {
      const std::vector<Real> values = of.to_host<Real>(stream_);
      return std::vector<double>(values.begin(), values.end());
    };
    return {{"out", doubles(out_)}, {"grad.qkv", doubles(grad_)}};
  }

  static constexpr std::int64_t kTokens = kSequences * kLength;
  Device device_;
  Stream stream_, host_, copies_;
  OffloadPool offload_pool_;
  Mesh mesh_;
  Batch whole_;
  AttentionOptions options_;
  Tensor x_, seed_, out_, grad_;
};

constexpr Case kCases[] = {{.name = "causal"},
                           {.name = "documents", .documents = true},
                           {.name = "window", .window = 5},
                           {.name = "window of documents", .documents = true, .window = 9},
                           {.name = "dropout", .dropout = 0.3},
                           {.name = "all", .documents = true, .window = 6, .dropout = 0.2}};

TEST(ChunkAttention, EqualsAttentionOfWholeSequences) {
  for (const Case& c : kCases) {
    const Results whole = Attending<double>(c).whole();
    for (const std::int64_t chunk : {1, 4, 8, 12, 23, 64}) {
      for (const bool on_host : {false, true}) {
        for (const auto& [tensor, values] : Attending<double>(c).in_chunks(chunk, on_host)) {
          EXPECT_LE(relative_error(values, whole.at(tensor)), 1e-13)
              << c.name << ", chunks of " << chunk << (on_host ? " on the host, " : ", ") << tensor;
        }
      }
    }
    for (const auto& [tensor, values] : Attending<float>(c).in_chunks(8, true)) {
      EXPECT_LE(relative_error(values, whole.at(tensor)), 1e-6) << c.name << ", " << tensor;
    }
  }
}

TEST(ChunkPieces, CoverASequenceInOrder) {
  for (const int ranks : {1, 2, 4}) {
    std::vector<int> seen(48);
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t chunk = 0;
      for (const Piece& piece : chunk_pieces(48, 20, rank, ranks)) {
        EXPECT_EQ(piece.begin / 20, chunk);
        EXPECT_EQ((piece.begin + piece.count - 1) / 20, chunk++);
        for (std::int64_t i = piece.begin; i < piece.begin + piece.count; ++i) {
          ++seen[static_cast<std::size_t>(i)];
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(48, 1));
  }
  EXPECT_THROW(chunk_pieces(48, 18, 0, 4), Error);
}

}  // namespace
}  // namespace bloomery::testing
