// With scores S = Q K^T, probabilities P = exp(scale S - lse), dropout factors F (0 or 1/(1-p), all
// ones without dropout) and D = rowsum(dO * O):
//   dV = (P * F)^T dO        dP = F * (dO V^T)        dS = scale P * (dP - D)
//   dQ = dS K                dK = dS^T Q
// With a bias, S = Q K^T + B and dB is dS, summed over pairs of the same distance.
// P is computed again from the saved log-sum-exp; products with F need no normalisation of their
// own because D already contains it.
#include "ops/attention/attention_block_cpu.h"
#include "ops/attention/inner_products_cpu.h"

namespace bloomery {
namespace {

template <class Products>
class BackwardTask {
 public:
  using T = typename Products::Element;
  using Real = typename Products::Real;

  // Sets key_grads and value_grads, [padded key_length, padded head_dim] each, and bias_grads,
  // [heads of the group, distances], unless null.
  BackwardTask(Stream& stream, const AttentionBackward& k, AttentionTiles tiles,
               std::int64_t sequence, std::int64_t group, Real* key_grads, Real* value_grads,
               Real* bias_grads)
      : k_(k),
        problem_(k.problem),
        sequence_(sequence),
        padded_(Products::padded_head(problem_)),
        scratch_(stream),
        products_(problem_, scratch_, tiles),
        group_(products_, problem_, k.k, k.v, sequence, group, Use::both, Use::scores),
        queries_(products_, Use::both),
        out_grads_(products_, Use::both),
        query_grads_(products_),
        probabilities_(scratch_.take<Real>(kKeyTile * kQueryBlock)),
        score_grads_(scratch_.take<Real>(kKeyTile * kQueryBlock)),
        factors_(scratch_.take<Real>(kKeyTile * kQueryBlock)),
        key_grads_(key_grads),
        value_grads_(value_grads),
        bias_grads_(bias_grads) {
    const std::int64_t keys = Products::padded_keys(problem_.key_length);
    std::fill_n(key_grads_, keys * padded_, Real(0));
    std::fill_n(value_grads_, keys * padded_, Real(0));
    if (bias_grads_ != nullptr) {
      std::fill_n(bias_grads_, problem_.heads_per_group() * num_distances(problem_), Real(0));
    }
  }

  void block(std::int64_t head, std::int64_t query) {
    const std::int64_t rows = std::min(kQueryBlock, problem_.query_length - query);
    const std::int64_t columns = Products::padded_queries(rows);
    read(head, query, rows);
    const VisibleKeys visible(problem_, sequence_, query, rows);
    group_.pack_until(visible.last);
    prefetch_next(head, query);
    const DropoutTile dropout(problem_, sequence_, head, query, rows);
    const BiasTile<Real> bias(problem_, sequence_, head, query, rows);
    query_grads_.start(rows);
    for (std::int64_t tile = visible.first; tile < visible.last; tile += kKeyTile) {
      const std::int64_t keys = std::min(kKeyTile, Products::padded_keys(visible.last - tile));
      if (!visible.sees(tile, keys)) {
        continue;
      }
      products_.scores(group_.keys, tile, keys, queries_, rows, probabilities_);
      if (bias) {
        bias.add(tile, keys, probabilities_);
      }
      products_.scores(group_.values, tile, keys, out_grads_, rows, score_grads_);
      if (dropout) {
        dropout.factors(tile, keys, factors_);
        differentiate_softmax<true>(visible, tile, keys, columns);
      } else {
        differentiate_softmax<false>(visible, tile, keys, columns);
      }
      products_.add_over_queries(probabilities_, keys, out_grads_, rows,
                                 value_grads_ + tile * padded_);
      products_.add_over_queries(score_grads_, keys, queries_, rows, key_grads_ + tile * padded_);
      query_grads_.add(score_grads_, group_.keys, tile, keys);
      if (bias_grads_ != nullptr) {
        bias.add_grad(tile, keys, score_grads_,
                      bias_grads_ + head % problem_.heads_per_group() * num_distances(problem_));
      }
    }
    write(head, query, rows);
  }

 private:
  void prefetch_next(std::int64_t head, std::int64_t query) const {
    group_.prefetch_next();
    with_next_block(problem_, sequence_, query, [&](std::int64_t token, std::int64_t rows) {
      const std::int64_t dim = problem_.head_dim, width = problem_.num_heads * dim;
      prefetch_rows(rows_of<T>(k_.q, problem_, token, head, rows), dim);
      prefetch_rows(Rows<T>{k_.grad_out.as<T>() + token * width + head * dim, width, rows}, dim);
      prefetch_rows(Rows<T>{k_.out.as<T>() + token * width + head * dim, width, rows}, dim);
    });
  }

  void read(std::int64_t head, std::int64_t query, std::int64_t rows) {
    const std::int64_t token = sequence_ * problem_.query_length + query;
    const std::int64_t dim = problem_.head_dim, width = problem_.num_heads * dim;
    const std::int64_t first = token * width + head * dim;
    const Rows<T> out{k_.out.as<T>() + first, width, rows};
    const Rows<T> out_grads{k_.grad_out.as<T>() + first, width, rows};
    products_.pack_queries(rows_of<T>(k_.q, problem_, token, head, rows), queries_);
    products_.pack_queries(out_grads, out_grads_);
    inner_products(out, out_grads, dim, deltas_);
    const Real* lse =
        k_.lse.as<Real>() + (sequence_ * problem_.num_heads + head) * problem_.query_length + query;
    std::fill_n(lse_, kQueryBlock, Real(0));
    std::copy_n(lse, rows, lse_);
  }

  // For `keys` keys from `tile`: in probabilities_ S becomes P * F, in score_grads_ dO V^T becomes
  // dS, both zero where a query does not see the key.
  template <bool kDropout>
  void differentiate_softmax(const VisibleKeys& visible, std::int64_t tile, std::int64_t keys,
                             std::int64_t columns) {
    constexpr Real kUnit = Exponential<T>::kUnit;
    const auto scale = static_cast<Real>(problem_.scale), scale_in_units = scale * kUnit;
    for (std::int64_t i = 0; i < columns; i += kLanes<Real>) {
      // Own variables, which the stores below cannot change.
      Real *const probabilities = probabilities_ + i, *const score_grads = score_grads_ + i;
      const Real* const factors = factors_ + i;
      const Vector<Real> lse = load_vector(lse_ + i), delta = load_vector(deltas_ + i);
      // A query without keys has lse = -inf; its scores are all -inf and -inf - 0 gives P = 0.
      const Vector<Real> base = lse == kMinusInfinity<Real> ? Vector<Real>{} : lse * kUnit;
      const SeenRows seen = visible.rows(tile, keys, i);
      visible.hide(seen, tile, i, probabilities);
      clear_unseen(seen, keys, probabilities);
      clear_unseen(seen, keys, score_grads);
      for (std::int64_t at = seen.begin * kQueryBlock; at < seen.end * kQueryBlock;
           at += kQueryBlock) {
        const Vector<Real> p =
            Exponential<T>::of(load_vector(probabilities + at) * scale_in_units - base);
        Vector<Real> grad = load_vector(score_grads + at);
        if constexpr (kDropout) {
          const Vector<Real> factor = load_vector(factors + at);
          store_vector(probabilities + at, p * factor);
          grad *= factor;
        } else {
          store_vector(probabilities + at, p);
        }
        store_vector(score_grads + at, p * (grad - delta) * scale);
      }
    }
  }

  void write(std::int64_t head, std::int64_t query, std::int64_t rows) {
    const std::int64_t token = sequence_ * problem_.query_length + query;
    const Real* const sums = query_grads_.finish();
    T* to = head_at<T>(k_.grad_q, problem_, token, head);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < problem_.head_dim; ++c) {
        store(to + i * k_.grad_q.token_stride + c, sums[i * padded_ + c]);
      }
    }
  }

  const AttentionBackward& k_;
  const AttentionProblem& problem_;
  const std::int64_t sequence_, padded_;
  Scratch scratch_;
  Products products_;
  GroupKeys<Products> group_;
  const typename Products::Queries queries_, out_grads_;
  typename Products::QuerySums query_grads_;
  Real *const probabilities_, *const score_grads_, *const factors_;
  Real *const key_grads_, *const value_grads_, *const bias_grads_;
  alignas(64) Real lse_[kQueryBlock];
  alignas(64) Real deltas_[kQueryBlock];
};

// Keys [begin, end) of a sequence and group: adds the splits' gradients to the first, in order, and
// writes the sum.
template <class T, class Real>
void write_key_grads(const AttentionProblem& p, const HeadView& to, std::int64_t sequence,
                     std::int64_t group, Real* sums, std::int64_t padded, std::int64_t num_splits,
                     std::int64_t split_stride, std::int64_t begin, std::int64_t end) {
  T* const head = head_at<T>(to, p, sequence * p.key_length, group * p.heads_per_group());
  for (std::int64_t key = begin; key < end; ++key) {
    Real* const sum = sums + key * padded;
    for (std::int64_t split = 1; split < num_splits; ++split) {
      for (std::int64_t c = 0; c < padded; ++c) {
        sum[c] += sum[split * split_stride + c];
      }
    }
    for (std::int64_t c = 0; c < p.head_dim; ++c) {
      store(head + key * to.token_stride + c, sum[c]);
    }
  }
}

// grad_bias = the sum of partial [sequences, groups, splits, heads of a group, distances].
template <class Real>
void write_bias_grads(const AttentionProblem& p, const Real* partial, std::int64_t num_splits,
                      Real* grad_bias) {
  const std::int64_t size = p.heads_per_group() * num_distances(p);  // of a group
  std::fill_n(grad_bias, p.num_groups * size, Real(0));
  for (std::int64_t task = 0; task < p.num_sequences * p.num_groups * num_splits; ++task) {
    Real* const to = grad_bias + task / num_splits % p.num_groups * size;
    for (std::int64_t i = 0; i < size; ++i) {
      to[i] += partial[task * size + i];
    }
  }
}

constexpr std::int64_t kBackwardTasks = 32;
constexpr std::int64_t kBlocksPerTask = 4;  // at least, so that summing the splits costs little

template <class Products>
void backward(Stream& stream, const AttentionBackward& k, AttentionTiles tiles) {
  using T = typename Products::Element;
  using Real = typename Products::Real;
  const AttentionProblem& p = k.problem;
  const Split split(p, kBackwardTasks, kBlocksPerTask);
  const std::int64_t padded = Products::padded_head(p);
  const std::int64_t size =
      Products::padded_keys(p.key_length) * padded;  // of dK or dV of one task
  const std::int64_t pairs = p.num_sequences * p.num_groups;
  const auto write = [&](std::int64_t pair, Real* sums, std::int64_t begin, std::int64_t end) {
    const std::int64_t sequence = pair / p.num_groups, group = pair % p.num_groups;
    write_key_grads<T>(p, k.grad_k, sequence, group, sums, padded, split.num_splits, 2 * size,
                       begin, end);
    write_key_grads<T>(p, k.grad_v, sequence, group, sums + size, padded, split.num_splits,
                       2 * size, begin, end);
  };
  const bool together = split.num_splits == 1;
  const Tensor partial =
      together ? Tensor()
               : Tensor::empty(stream, dtype_of<Real>, {pairs, split.num_splits, 2 * size});
  const std::int64_t bias_size = k.grad_bias ? p.heads_per_group() * num_distances(p) : 0;
  const Tensor bias_partial =
      Tensor::empty(stream, dtype_of<Real>, {pairs * split.num_splits, bias_size});
  ThreadPool& pool = stream.device().pool();
  pool.for_each(pairs * split.num_splits, [&](std::int64_t task) {
    const std::int64_t part = task % split.num_splits, pair = task / split.num_splits;
    const Tensor own = together ? Tensor::empty(stream, dtype_of<Real>, {2 * size}) : Tensor();
    Real* const sums = static_cast<Real*>(together ? own.data() : partial.data()) +
                       (together ? 0 : task * 2 * size);
    const std::int64_t group = pair % p.num_groups;
    Real* const bias_sums =
        k.grad_bias ? static_cast<Real*>(bias_partial.data()) + task * bias_size : nullptr;
    BackwardTask<Products> work(stream, k, tiles, pair / p.num_groups, group, sums, sums + size,
                                bias_sums);
    for (std::int64_t item = split.begin(part); item < split.begin(part + 1); ++item) {
      work.block(group * p.heads_per_group() + item / split.blocks_per_head,
                 item % split.blocks_per_head * kQueryBlock);
    }
    if (together) {
      write(pair, sums, 0, p.key_length);
    }
  });
  if (!together) {
    const std::int64_t tiles = (p.key_length + kKeyTile - 1) / kKeyTile;
    pool.for_each(pairs * tiles, [&](std::int64_t item) {
      const std::int64_t pair = item / tiles, begin = item % tiles * kKeyTile;
      write(pair, static_cast<Real*>(partial.data()) + pair * split.num_splits * 2 * size, begin,
            std::min(begin + kKeyTile, p.key_length));
    });
  }
  if (k.grad_bias) {
    write_bias_grads(p, static_cast<const Real*>(bias_partial.data()), split.num_splits,
                     k.grad_bias.as<Real>());
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AttentionBackward& k) {
  const AttentionTiles tiles = stream.device().service<AttentionSettings>().tiles;
  dispatch_products(k.problem, tiles, [&](auto products) {
    backward<typename decltype(products)::type>(stream, k, tiles);
  });
}

}  // namespace bloomery
