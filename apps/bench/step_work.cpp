#include "apps/bench/step_work.h"

#include <algorithm>

#include "ops/activation/activation.h"
#include "ops/embedding/embedding.h"
#include "ops/fp8/quantize.h"
#include "ops/loss/loss.h"
#include "ops/norm/norm.h"
#include "ops/optimizer/gradient_norm.h"
#include "ops/optimizer/update.h"
#include "ops/rotary/rotary.h"

namespace bloomery {
namespace {

template <class... Views>
double bytes_of(const Views&... views) {
  return (0.0 + ... + (views ? static_cast<double>(views.bytes()) : 0.0));
}

double number(std::int64_t count) { return static_cast<double>(count); }

// What a kernel must read and write of memory; what it could keep to itself is not counted.
double bytes_moved(const NormForward& k) {
  return bytes_of(k.stream, k.pending, k.out, k.y, k.statistics);
}
double bytes_moved(const NormBackward& k) {
  return bytes_of(k.dy, k.x, k.statistics, k.later, k.d_stream, k.d_pending) +
         (k.add_stream ? bytes_of(k.d_stream) : 0) + (k.add_pending ? bytes_of(k.d_pending) : 0);
}
double bytes_moved(const Settle& k) { return bytes_of(k.stream, k.pending, k.out); }
double bytes_moved(const GatedForward& k) { return bytes_of(k.x, k.y); }
double bytes_moved(const GatedBackward& k) {
  return bytes_of(k.grad_y, k.x, k.grad_x) + (k.add ? bytes_of(k.grad_x) : 0);
}
double bytes_moved(const Rotary& k) {
  return 2 * number(k.num_tokens * k.num_groups * k.turned * k.head_dim) *
         static_cast<double>(size_of(k.data.dtype));
}
double bytes_moved(const LossAndGradient& k) { return 2 * bytes_of(k.logits); }
// Rows of the tables are as wide as the result's.
double bytes_moved(const EmbeddingForward& k) {
  const double rows = number(k.y.numel()) * static_cast<double>(size_of(k.table.dtype));
  return bytes_of(k.y) + rows * (1 + (k.position_table ? 1 : 0) + (k.type_table ? 1 : 0));
}
double bytes_moved(const EmbeddingBackward& k) {
  const double touched = bytes_of(k.grad_table) *
                         std::min(1.0, number(k.grad_y.rows()) /
                                           number(std::max<std::int64_t>(1, k.grad_table.rows())));
  return bytes_of(k.grad_y) + (k.add ? 2 * touched : bytes_of(k.grad_table));
}
double bytes_moved(const SquaredNormPartials& k) { return bytes_of(k.grad); }
double bytes_moved(const Update& k) {
  const UpdateBuffers& b = k.buffers;
  double bytes = bytes_of(b.grad);
  bytes += b.form == WeightForm::split ? 2 * bytes_of(b.value, b.low)
                                       : bytes_of(b.value) + 2 * bytes_of(b.master);
  for (const View& tensor : b.state) {
    bytes += 2 * bytes_of(tensor);
  }
  return bytes;
}
// Whoever makes the numbers could write them in 8 bits.
double bytes_moved(const Quantize& k) { return bytes_of(k.rows, k.transposed); }

// Sorts the launches of a rank's step by what they are.
class Recorder final : public Collector {
 public:
  Recorder(Stream& stream, StepWork& work) : stream_(stream), work_(work), clock_(stream) {
    stream.set_collector(this);
    clock_.start();
  }
  ~Recorder() override { stream_.set_collector(nullptr); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool take(const std::type_info& type, const void* kernel) override {
    hear(type, kernel);
    return true;
  }
  void flush() override {}

 private:
  // As StepProfiler names it.
  ProfileRow row() const {
    const OpRecord* const op = clock_.innermost();
    return op == nullptr ? ProfileRow{}
                         : ProfileRow{op->name, op->is_phase ? "between ops" : name(op->kind)};
  }

  template <class Kernel>
  bool moves(const std::type_info& type, const void* kernel, const char* what) {
    if (type != typeid(Kernel)) {
      return false;
    }
    work_.bytes.push_back({what, bytes_moved(*static_cast<const Kernel*>(kernel)), row()});
    return true;
  }

  template <class Kernel>
  bool computes(const std::type_info& type, const void* kernel,
                std::vector<StepWork::Launched<Kernel>>& into) {
    if (type != typeid(Kernel)) {
      return false;
    }
    into.push_back({*static_cast<const Kernel*>(kernel), row()});
    return true;
  }

  void hear(const std::type_info& type, const void* kernel) {
    if (computes(type, kernel, work_.products)) {
      const Matmul& product = work_.products.back().kernel;
      if (product.before || product.derivative_at) {
        work_.bytes.push_back({"activations: their inputs, written or read beside a product",
                               bytes_of(product.before, product.derivative_at), row()});
      }
      return;
    }
    static_cast<void>(
        computes(type, kernel, work_.forward) || computes(type, kernel, work_.backward) ||
        moves<NormForward>(type, kernel, "norms") ||
        moves<NormBackward>(type, kernel, "norms, backward") ||
        moves<Settle>(type, kernel, "residual sums") ||
        moves<GatedForward>(type, kernel, "gated activations") ||
        moves<GatedBackward>(type, kernel, "gated activations, backward") ||
        moves<Rotary>(type, kernel, "rotary positions") ||
        moves<LossAndGradient>(type, kernel, "loss: logits read, their gradient written") ||
        moves<EmbeddingForward>(type, kernel, "embedding") ||
        moves<EmbeddingBackward>(type, kernel, "embedding, backward") ||
        moves<Quantize>(type, kernel, "copies in 8 bits") ||
        moves<SquaredNormPartials>(type, kernel, "gradient norm") ||
        moves<Update>(type, kernel, "optimizer: gradients, weights, state"));
  }

  Stream& stream_;
  StepWork& work_;
  OpClock clock_;
};

}  // namespace

StepWork work_of_step(RankOptions options, const BenchBatch& batch) {
  options.device = {.kind = DeviceKind::abstract,
                    .num_threads = options.device.num_threads,
                    .stands_for = options.device.kind};
  Rank rank(options);
  const Batch tokens =
      rank.upload(random_batch(batch.sequences, batch.length, options.model.vocabulary.size, 1, 0));
  const auto step = [&] {
    rank.enqueue_gradients(
        {batch.micro_batches, [&](std::int64_t) -> Batch { return Batch(tokens); }});
    rank.enqueue_reduction();
    rank.enqueue_update(1);
  };
  step();  // the first one finds the scales of 8-bit tensors in another way
  StepWork work;
  const Recorder recorder(rank.stream(), work);
  step();
  return work;
}

}  // namespace bloomery
