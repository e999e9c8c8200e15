#include "train/gpt_rank.h"

#include <map>

#include "autograd/metrics.h"
#include "device/op_clock.h"
#include "ops/arithmetic/arithmetic.h"
#include "pipeline/schedule.h"
#include "train/timers.h"

namespace bloomery {
namespace {

Timers::Scope timed(Timers* timers, const char* name) {
  constexpr std::int64_t kLevelOfPasses = 2;
  return timers != nullptr ? timers->scope(kLevelOfPasses, name) : Timers::Scope(nullptr, name);
}

}  // namespace

GptRank::GptRank(const RankOptions& options, const MeshDegrees& degrees,
                 std::unique_ptr<Communicator> world)
    : options_(options),
      device_(std::make_unique<Device>(options.device)),
      stream_(std::make_unique<Stream>(*device_)),
      mesh_(std::make_unique<Mesh>(degrees, std::move(world))),
      model_(std::make_unique<Model>(options.model, *mesh_, options.dtype)) {
  // Of the tensor ranks that hold the same part, the first counts it in the gradient norm.
  const bool first = mesh_->coordinate(Axis::tensor) == 0;
  layout_ = std::make_unique<FlatLayout>(
      *stream_, model_->parameters(),
      FlatLayoutOptions{.dtype = options.dtype, .counted_in_norm = [first](const Parameter& p) {
                          return first || !(p.box == Box::whole(p.box.global));
                        }});
  layout_->initialize(options.seed);
  optimizer_ = std::make_unique<Optimizer>(*stream_, options.optimizer,
                                           std::vector<FlatShard>{layout_->shard()});
  const DType dtype = layout_->grads().dtype();
  statistics_ = Tensor::zeros(*stream_, dtype, {2});
  one_ = Tensor::zeros(*stream_, dtype, {1});
  const double one = 1;
  const float one_fp32 = 1;
  stream_->copy(one_.data(), dtype == DType::fp64 ? static_cast<const void*>(&one) : &one_fp32,
                one_.bytes());
  stream_->synchronize();
  readback_ = std::make_unique<Readback>(*stream_, dtype, statistics_.numel());
}

Context GptRank::context(const Batch& batch, Tape* tape) {
  return Context{.stream = *stream_,
                 .mesh = *mesh_,
                 .batch = batch,
                 .tape = tape,
                 .seed = options_.seed,
                 .training = options_.training};
}

Tensor GptRank::compute_loss(Context& context) {
  Metrics metrics;
  context.metrics = &metrics;
  model_->forward(context, {}, options_.recompute);
  return metrics.entries().front().value;
}

void GptRank::add_loss(const Tensor& loss, std::int64_t num_micro_batches) {
  const auto parts = static_cast<double>(num_micro_batches * mesh_->degree(Axis::data));
  launch(*stream_, ScaleAdd{.x = loss,
                            .y = statistics_.range(0, loss.shape()),
                            .factor = static_cast<float>(1 / parts),
                            .add = true});
}

void GptRank::enqueue_gradients(std::int64_t num_micro_batches, const BatchSource& batch) {
  layout_->begin_accumulation();
  stream_->fill(statistics_.data(), 0, statistics_.bytes());
  const Tensor grad_scale = optimizer_->grad_scale(num_micro_batches * mesh_->degree(Axis::data));
  struct InFlight {
    explicit InFlight(Stream& stream) : tape(stream) {}
    Batch batch;
    Tape tape;
  };
  std::map<std::int64_t, std::unique_ptr<InFlight>> in_flight;
  const auto list = one_forward_one_backward(mesh_->coordinate(Axis::pipeline),
                                             mesh_->degree(Axis::pipeline), num_micro_batches);
  for (const Instruction& instruction : list) {
    std::unique_ptr<InFlight>& work = in_flight[instruction.micro_batch];
    const bool is_forward = instruction.work == Instruction::Work::forward;
    const Timers::Scope timer = timed(timers_, is_forward ? "forward-compute" : "backward-compute");
    if (is_forward) {
      work = std::make_unique<InFlight>(*stream_);
      work->batch = batch(instruction.micro_batch);
      work->batch.grad_scale = grad_scale;
      Context forward = context(work->batch, &work->tape);
      add_loss(compute_loss(forward), num_micro_batches);
    } else {
      if (tape_report_) {
        tape_report_ = {work->tape.describe(), work->tape.saved_bytes()};
      }
      work->tape.backward();
      in_flight.erase(instruction.micro_batch);
    }
  }
  layout_->finish_accumulation();
}

void GptRank::enqueue_reduction() {
  mesh_->axis(Axis::data).all_reduce(layout_->grads(), Reduce::sum, *stream_);
}

void GptRank::enqueue_update(std::int64_t schedule_units, bool stop) {
  if (stop) {
    launch(*stream_, ScaleAdd{.x = one_, .y = statistics_.range(1, {1})});
  }
  Communicator& data = mesh_->axis(Axis::data);
  data.all_reduce(statistics_, Reduce::sum, *stream_);
  readback_->publish(statistics_);
  Communicator* const groups[] = {&mesh_->axis(Axis::tensor)};
  optimizer_->step(groups, schedule_units);
}

GptRank::Outcome GptRank::outcome(int age) const {
  const std::vector<double> numbers = readback_->read(age);
  return {.loss = numbers[0], .stop = numbers[1] > 0, .update = optimizer_->report(age)};
}

double GptRank::mean_loss() {
  const Tensor sums = Tensor::empty(*stream_, statistics_.dtype(), statistics_.shape());
  stream_->copy(sums.data(), statistics_.data(), sums.bytes());
  mesh_->axis(Axis::data).all_reduce(sums, Reduce::sum, *stream_);
  Readback result(*stream_, sums.dtype(), sums.numel());
  result.publish(sums);
  return result.read(0)[0];
}

double GptRank::evaluate(std::int64_t num_micro_batches, const BatchSource& batch) {
  stream_->fill(statistics_.data(), 0, statistics_.bytes());
  for (std::int64_t m = 0; m < num_micro_batches; ++m) {
    const Batch now = batch(m);
    Context forward = context(now, nullptr);
    forward.training = false;
    add_loss(compute_loss(forward), num_micro_batches);
  }
  return mean_loss();
}

double GptRank::accumulate(std::span<const HostBatch> micro_batches) {
  enqueue_gradients(static_cast<std::int64_t>(micro_batches.size()), [&](std::int64_t m) {
    return upload(micro_batches[static_cast<std::size_t>(m)], *stream_);
  });
  enqueue_reduction();
  return mean_loss();
}

GptRank::Result GptRank::step(std::span<const HostBatch> micro_batches) {
  Result result;
  result.loss = accumulate(micro_batches);
  std::int64_t num_samples = 0;
  for (const HostBatch& batch : micro_batches) {
    num_samples += batch.num_samples();
  }
  enqueue_update(num_samples);
  result.grad_norm = optimizer_->report(0).grad_norm;
  return result;
}

}  // namespace bloomery
