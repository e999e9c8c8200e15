#include "ops/attention/attention_block_cpu.h"

namespace bloomery {
namespace {

// Softmax over the keys of one block of queries, tile after tile: running maxima of the scaled
// scores, in the units of Exponential, and sums of exp(score - maximum).
template <class T>
struct OnlineSoftmax {
  using Real = Accumulator<T>;
  alignas(64) Real maxima[kQueryBlock];
  alignas(64) Real sums[kQueryBlock];
  alignas(64) Real rescale[kQueryBlock];  // of what was accumulated before the last tile

  OnlineSoftmax() {
    std::fill_n(maxima, kQueryBlock, kMinusInfinity<Real>);
    std::fill_n(sums, kQueryBlock, Real(0));
  }

  // scores [keys][kQueryBlock], of keys from `tile` on, become exp(scale * score - maximum), zero
  // where a query does not see the key.
  void add_tile(const VisibleKeys& visible, std::int64_t tile, std::int64_t keys,
                std::int64_t columns, Real scale, Real* scores) {
    scale *= Exponential<T>::kUnit;
    for (std::int64_t i = 0; i < columns; i += kLanes<Real>) {
      const SeenRows seen = visible.rows(tile, keys, i);
      visible.hide(seen, tile, i, scores + i);
      clear_unseen(seen, keys, scores + i);
      Vector<Real> highest = Vector<Real>{} + kMinusInfinity<Real>;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        const Vector<Real> score = load_vector(scores + j * kQueryBlock + i);
        highest = score > highest ? score : highest;
      }
      const Vector<Real> before = load_vector(maxima + i);
      highest *= scale;
      highest = highest > before ? highest : before;
      store_vector(maxima + i, highest);
      // A query that has seen no key yet: exp(-inf - 0) is 0.
      const Vector<Real> base = highest == kMinusInfinity<Real> ? Vector<Real>{} : highest;
      const Vector<Real> factor = Exponential<T>::of(before - base);
      Vector<Real> sum = load_vector(sums + i) * factor;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        Real* at = scores + j * kQueryBlock + i;
        const Vector<Real> p = Exponential<T>::of(load_vector(at) * scale - base);
        sum += p;
        store_vector(at, p);
      }
      store_vector(sums + i, sum);
      store_vector(rescale + i, factor);
    }
  }
};

template <class Products>
class ForwardTask {
 public:
  using T = typename Products::Element;
  using Real = typename Products::Real;

  ForwardTask(Stream& stream, const AttentionForward& k, AttentionTiles tiles,
              std::int64_t sequence, std::int64_t group)
      : k_(k),
        problem_(k.problem),
        sequence_(sequence),
        scratch_(stream),
        products_(problem_, scratch_, tiles),
        group_(products_, problem_, k.k, k.v, sequence, group, Use::scores, Use::sums),
        queries_(products_, Use::scores),
        out_(products_),
        scores_(scratch_.take<Real>(kKeyTile * kQueryBlock)),
        factors_(scratch_.take<Real>(kKeyTile * kQueryBlock)) {}

  void block(std::int64_t head, std::int64_t query) {
    const std::int64_t rows = std::min(kQueryBlock, problem_.query_length - query);
    const std::int64_t columns = Products::padded_queries(rows);
    const std::int64_t token = sequence_ * problem_.query_length + query;
    products_.pack_queries(rows_of<T>(k_.q, problem_, token, head, rows), queries_);
    const VisibleKeys visible(problem_, sequence_, query, rows);
    group_.pack_until(visible.last);
    prefetch_next(head, query);
    const DropoutTile dropout(problem_, sequence_, head, query, rows);
    const BiasTile<Real> bias(problem_, sequence_, head, query, rows);
    OnlineSoftmax<T> softmax;
    out_.start(rows);
    for (std::int64_t tile = visible.first; tile < visible.last; tile += kKeyTile) {
      const std::int64_t keys = std::min(kKeyTile, Products::padded_keys(visible.last - tile));
      if (!visible.sees(tile, keys)) {
        continue;
      }
      products_.scores(group_.keys, tile, keys, queries_, rows, scores_);
      if (bias) {
        bias.add(tile, keys, scores_);
      }
      softmax.add_tile(visible, tile, keys, columns, static_cast<Real>(problem_.scale), scores_);
      if (dropout) {
        dropout.factors(tile, keys, factors_);
        for (std::int64_t i = 0; i < keys * kQueryBlock; ++i) {
          scores_[i] *= factors_[i];
        }
      }
      out_.rescale(softmax.rescale);
      out_.add(scores_, group_.values, tile, keys);
    }
    write(softmax, head, query, rows);
  }

 private:
  void prefetch_next(std::int64_t head, std::int64_t query) const {
    group_.prefetch_next();
    with_next_block(problem_, sequence_, query, [&](std::int64_t token, std::int64_t rows) {
      prefetch_rows(rows_of<T>(k_.q, problem_, token, head, rows), problem_.head_dim);
    });
  }

  void write(const OnlineSoftmax<T>& softmax, std::int64_t head, std::int64_t query,
             std::int64_t rows) {
    const std::int64_t width = problem_.num_heads * problem_.head_dim;
    const std::int64_t dim = problem_.head_dim, padded = Products::padded_head(problem_);
    T* out = k_.out.as<T>() + (sequence_ * problem_.query_length + query) * width + head * dim;
    Real* lse =
        k_.lse.as<Real>() + (sequence_ * problem_.num_heads + head) * problem_.query_length + query;
    const Real* sums = out_.finish();
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real sum = softmax.sums[i];
      const Real inverse = sum > 0 ? 1 / sum : 0;
      for (std::int64_t c = 0; c < dim; ++c) {
        store(out + i * width + c, sums[i * padded + c] * inverse);
      }
      lse[i] = sum > 0 ? softmax.maxima[i] / Exponential<T>::kUnit + std::log(sum)
                       : kMinusInfinity<Real>;
    }
  }

  const AttentionForward& k_;
  const AttentionProblem& problem_;
  const std::int64_t sequence_;
  Scratch scratch_;
  Products products_;
  GroupKeys<Products> group_;
  const typename Products::Queries queries_;
  typename Products::QuerySums out_;
  Real *const scores_, *const factors_;
};

constexpr std::int64_t kForwardTasks = 32;

template <class Products>
void forward(Stream& stream, const AttentionForward& k, AttentionTiles tiles) {
  const AttentionProblem& p = k.problem;
  const Split split(p, kForwardTasks, 1);
  const std::int64_t tasks = p.num_sequences * p.num_groups * split.num_splits;
  stream.device().pool().for_each(tasks, [&](std::int64_t task) {
    const std::int64_t part = task % split.num_splits, pair = task / split.num_splits;
    const std::int64_t sequence = pair / p.num_groups, group = pair % p.num_groups;
    ForwardTask<Products> work(stream, k, tiles, sequence, group);
    for (std::int64_t item = split.begin(part); item < split.begin(part + 1); ++item) {
      work.block(group * p.heads_per_group() + item / split.blocks_per_head,
                 item % split.blocks_per_head * kQueryBlock);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AttentionForward& k) {
  const AttentionTiles tiles = stream.device().service<AttentionSettings>().tiles;
  dispatch_products(k.problem, tiles, [&](auto products) {
    forward<typename decltype(products)::type>(stream, k, tiles);
  });
}

}  // namespace bloomery
