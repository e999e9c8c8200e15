#include "ops/attention/attention_block_cpu.h"

namespace bloomery {
namespace {

// Softmax over the keys of one block of queries, tile after tile: running maxima of the scaled
// scores and sums of exp(score - maximum).
template <class Real>
struct OnlineSoftmax {
  alignas(64) Real maxima[kQueryBlock];
  alignas(64) Real sums[kQueryBlock];
  alignas(64) Real rescale[kQueryBlock];  // of what was accumulated before the last tile

  OnlineSoftmax() {
    std::fill_n(maxima, kQueryBlock, kMinusInfinity<Real>);
    std::fill_n(sums, kQueryBlock, Real(0));
  }

  // scores [keys][kQueryBlock] become exp(scale * score - maximum).
  void add_tile(Real* scores, std::int64_t keys, std::int64_t columns, Real scale) {
    for (std::int64_t i = 0; i < columns; i += kLanes<Real>) {
      Vector<Real> highest = load_vector(scores + i);
      for (std::int64_t j = 1; j < keys; ++j) {
        const Vector<Real> score = load_vector(scores + j * kQueryBlock + i);
        highest = score > highest ? score : highest;
      }
      const Vector<Real> before = load_vector(maxima + i);
      highest *= scale;
      highest = highest > before ? highest : before;
      store_vector(maxima + i, highest);
      // A query that has seen no key yet: exp(-inf - 0) is 0.
      const Vector<Real> base = highest == kMinusInfinity<Real> ? Vector<Real>{} : highest;
      const Vector<Real> factor = exponential<Real>(before - base);
      Vector<Real> sum = load_vector(sums + i) * factor;
      for (std::int64_t j = 0; j < keys; ++j) {
        Real* at = scores + j * kQueryBlock + i;
        const Vector<Real> p = exponential<Real>(load_vector(at) * scale - base);
        sum += p;
        store_vector(at, p);
      }
      store_vector(sums + i, sum);
      store_vector(rescale + i, factor);
    }
  }
};

template <class T>
class ForwardTask {
 public:
  using Real = Accumulator<T>;

  ForwardTask(Stream& stream, const AttentionForward& k, std::int64_t sequence, std::int64_t group)
      : k_(k),
        problem_(k.problem),
        sequence_(sequence),
        padded_(padded_head<Real>(problem_)),
        scratch_(stream, 2 * problem_.key_length * padded_ + 3 * kQueryBlock * padded_ +
                             2 * kKeyTile * kQueryBlock),
        keys_(scratch_.take(problem_.key_length * padded_)),
        values_(scratch_.take(problem_.key_length * padded_)),
        queries_(scratch_.take(kQueryBlock * padded_)),
        out_(scratch_.take(kQueryBlock * padded_)),
        queries_transposed_(scratch_.take(kQueryBlock * padded_)),
        scores_(scratch_.take(kKeyTile * kQueryBlock)),
        factors_(scratch_.take(kKeyTile * kQueryBlock)) {
    const std::int64_t head = group * problem_.heads_per_group();
    const std::int64_t token = sequence * problem_.key_length;
    pack_rows(head_at<T>(k.k, problem_, token, head), k.k.token_stride, problem_.key_length,
              problem_.head_dim, padded_, keys_);
    pack_rows(head_at<T>(k.v, problem_, token, head), k.v.token_stride, problem_.key_length,
              problem_.head_dim, padded_, values_);
  }

  void block(std::int64_t head, std::int64_t query) {
    const std::int64_t rows = std::min(kQueryBlock, problem_.query_length - query);
    const std::int64_t columns = round_up(rows, kLanes<Real>);
    const std::int64_t token = sequence_ * problem_.query_length + query;
    pack_rows(head_at<T>(k_.q, problem_, token, head), k_.q.token_stride, rows, problem_.head_dim,
              padded_, queries_);
    transpose_rows(queries_, rows, padded_, queries_transposed_);
    const VisibleKeys visible(problem_, sequence_, query, rows);
    const DropoutTile dropout(problem_, sequence_, head, query, rows);
    OnlineSoftmax<Real> softmax;
    std::fill_n(out_, rows * padded_, Real(0));
    for (std::int64_t tile = visible.first; tile < visible.last; tile += kKeyTile) {
      const std::int64_t keys = std::min(kKeyTile, visible.last - tile);
      tile_product(Broadcast<Real>{keys_ + tile * padded_, padded_, 1}, queries_transposed_,
                   kQueryBlock, scores_, kQueryBlock, keys, columns, problem_.head_dim, false);
      if (!visible.all(tile, tile + keys)) {
        hide_keys(visible, tile, keys, columns, scores_);
      }
      softmax.add_tile(scores_, keys, columns, static_cast<Real>(problem_.scale));
      if (dropout) {
        dropout.factors(tile, keys, factors_);
        for (std::int64_t i = 0; i < keys * kQueryBlock; ++i) {
          scores_[i] *= factors_[i];
        }
      }
      accumulate(tile, keys, rows, softmax.rescale);
    }
    write(softmax, head, query, rows);
  }

 private:
  void accumulate(std::int64_t tile, std::int64_t keys, std::int64_t rows, const Real* rescale) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < padded_; ++c) {
        out_[i * padded_ + c] *= rescale[i];
      }
    }
    tile_product(Broadcast<Real>{scores_, 1, kQueryBlock}, values_ + tile * padded_, padded_, out_,
                 padded_, rows, padded_, keys, true);
  }

  void write(const OnlineSoftmax<Real>& softmax, std::int64_t head, std::int64_t query,
             std::int64_t rows) const {
    const std::int64_t width = problem_.num_heads * problem_.head_dim;
    T* out = k_.out.as<T>() + (sequence_ * problem_.query_length + query) * width +
             head * problem_.head_dim;
    Real* lse =
        k_.lse.as<Real>() + (sequence_ * problem_.num_heads + head) * problem_.query_length + query;
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real sum = softmax.sums[i];
      const Real inverse = sum > 0 ? 1 / sum : 0;
      for (std::int64_t c = 0; c < problem_.head_dim; ++c) {
        store(out + i * width + c, out_[i * padded_ + c] * inverse);
      }
      lse[i] = sum > 0 ? softmax.maxima[i] + std::log(sum) : kMinusInfinity<Real>;
    }
  }

  const AttentionForward& k_;
  const AttentionProblem& problem_;
  const std::int64_t sequence_, padded_;
  Scratch<Real> scratch_;
  Real *const keys_, *const values_, *const queries_, *const out_, *const queries_transposed_,
                                                                       *const scores_,
                                                                           *const factors_;
};

constexpr std::int64_t kForwardTasks = 32;

template <class T>
void forward(Stream& stream, const AttentionForward& k) {
  const AttentionProblem& p = k.problem;
  const Split split(p, kForwardTasks, 1);
  const std::int64_t tasks = p.num_sequences * p.num_groups * split.num_splits;
  stream.device().pool().for_each(tasks, [&](std::int64_t task) {
    const std::int64_t part = task % split.num_splits, pair = task / split.num_splits;
    const std::int64_t sequence = pair / p.num_groups, group = pair % p.num_groups;
    ForwardTask<T> work(stream, k, sequence, group);
    for (std::int64_t item = split.begin(part); item < split.begin(part + 1); ++item) {
      work.block(group * p.heads_per_group() + item / split.blocks_per_head,
                 item % split.blocks_per_head * kQueryBlock);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AttentionForward& k) {
  dispatch_floating(k.problem.dtype,
                    [&](auto tag) { forward<typename decltype(tag)::type>(stream, k); });
}

}  // namespace bloomery
