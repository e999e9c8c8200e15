#include "optim/optimizer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/arithmetic/arithmetic.h"
#include "ops/optimizer/gradient_norm.h"

namespace bloomery {
namespace {

constexpr auto kStateBytes = static_cast<std::int64_t>(sizeof(StepState));

bool starts_at_unit(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data()) % 16 == 0;
}

void check_part(const FlatShard& shard, const Tensor& part, const char* what,
                std::optional<DType> other = {}) {
  const MasterWeights weights = shard.weights();
  check(
      (part.dtype() == weights.dtype() || part.dtype() == other) && part.numel() == weights.numel(),
      "optimizer: ", what, " is ", part.dtype(), part.shape(), " but the master weights are ",
      weights.dtype(), Shape{weights.numel()});
  check(starts_at_unit(part), "optimizer: ", what, " must start at a multiple of 16 bytes");
}

void check_value(const FlatShard& shard) {
  const DType dtype = shard.weights().dtype();
  if (!shard.on_device() && shard.value.dtype() == dtype) {
    return;  // a copy of them
  }
  check(dtype == DType::fp32 &&
            (shard.value.dtype() == DType::bf16 || shard.value.dtype() == DType::fp16),
        "optimizer: no ", shard.value.dtype(), " copy of ", dtype,
        " weights; values are bf16 or fp16 with fp32 master weights, or are the master weights");
  const std::int64_t count = shard.weights().numel();
  check(shard.value.numel() == count && starts_at_unit(shard.value), "optimizer: value ",
        shard.value.shape(), " does not fit master weights ", Shape{count},
        " or does not start at a multiple of 16 bytes");
}

void check_weights(const FlatShard& shard) {
  if (shard.form == WeightForm::split) {
    check(shard.on_device() && shard.value.dtype() == DType::bf16 &&
              shard.low.numel() == kLowHalfBytes * shard.value.numel() && starts_at_unit(shard.low),
          "optimizer: halves of master weights are bf16 values and ", kLowHalfBytes,
          " bytes of each, on the device");
    return;
  }
  const DType dtype = shard.master.dtype();
  check(shard.master && (dtype == DType::fp32 || dtype == DType::fp64),
        "optimizer: master weights must be fp32, not ", dtype);
  check_part(shard, shard.master, "master");
}

void check_shard(const FlatShard& shard) {
  check_weights(shard);
  check_part(shard, shard.grad, "the gradient",
             shard.form != WeightForm::exact ? std::optional(DType::bf16) : std::nullopt);
  const std::int64_t units = num_units(shard.numel());
  check(shard.unit_flags.dtype() == DType::uint8 && shard.unit_flags.numel() == units,
        "optimizer: ", shard.numel(), " elements need ", units, " unit flags of one byte, not ",
        shard.unit_flags.dtype(), shard.unit_flags.shape());
  if (!shard.on_device()) {
    check(shard.host_flags.numel() == units && !shard.host_parts.empty(),
          "optimizer: a shard on the host has no flags or no parts there");
  }
  if (shard.form != WeightForm::exact) {
    check_value(shard);
  }
}

void check_options(const OptimizerOptions& options) {
  std::visit(
      []<class Rule>(const Rule& rule) {
        for (const RuleFlag<Rule>& flag : Rule::flags()) {
          const double number = rule.*flag.number;
          check(contains(flag.range, number), "optimizer: ", flag.name, " is ", number, ", not ",
                text(flag.range));
        }
      },
      options.rule);
  check(options.clip >= 0, "optimizer: the gradient norm cannot be clipped to ", options.clip,
        "; use 0 to switch clipping off");
  check_loss_scale(options.loss_scale);
}

StepReport report_of(const StepState& state) {
  return {.skipped = state.update.skip != 0,
          .num_steps = state.num_steps,
          .num_samples = state.num_samples,
          .num_skipped = state.num_skipped,
          .grad_norm = state.grad_norm,
          .clip_coefficient = state.clip_coefficient,
          .learning_rate = state.learning_rate,
          .next_learning_rate = state.next_learning_rate,
          .weight_decay = state.weight_decay,
          .loss_scale = state.loss_scale.scale,
          .scale_exhausted = state.scale_exhausted};
}

void launch_update(Stream& stream, const OptimizerRule& rule, const UpdateBuffers& buffers,
                   const UpdateScalars* scalars) {
  const OpScope scope(stream, name_of(rule), OpKind::optimizer);
  launch(stream, Update{.buffers = buffers, .rule = rule, .scalars = scalars});
}

}  // namespace

Optimizer::Optimizer(Stream& stream, const OptimizerOptions& options, std::vector<FlatShard> shards,
                     Stream* copies)
    : stream_(&stream),
      options_(options),
      rules_{.clip = options.clip,
             .schedule = make_schedule(options.schedule),
             .loss_scale = options.loss_scale},
      shards_(std::move(shards)),
      reports_(stream, DType::uint8, kStateBytes) {
  check_options(options);
  std::int64_t num_partials = 0;
  for (FlatShard& shard : shards_) {
    check_shard(shard);
    add_state(shard);
    num_partials += num_norm_partials(shard.numel());
  }
  partials_ = Tensor::empty(stream, DType::fp64, {num_partials});
  squared_norm_ = Tensor::zeros(stream, DType::fp64, {1});
  loss_scale_ = Tensor::empty(stream, DType::fp32, {1});
  state_ = Tensor::empty(stream, DType::uint8, {kStateBytes});
  set_state(initial_step_state(rules_));
  if (std::ranges::any_of(shards_, [](const FlatShard& each) { return !each.on_device(); })) {
    check(copies != nullptr, "optimizer: a shard is on the host, but no stream copies from there");
    on_host_ = std::make_unique<HostUpdate>(
        stream, *copies, shards_,
        [this](Stream& host, const UpdateBuffers& buffers, const UpdateScalars* scalars) {
          launch_update(host, options_.rule, buffers, scalars);
        });
  }
}

void Optimizer::add_state(FlatShard& shard) const {
  const DType dtype = shard.weights().dtype();
  const std::int64_t count = shard.numel();
  const std::span<const StateTensor> declared = state_tensors();
  if (shard.state.empty()) {
    Stream& stream = shard.on_device() ? *stream_ : *shard.host;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      shard.state.push_back(shard.placement == Placement::file
                                ? shard.files->zeros(dtype, count)
                                : Tensor::zeros(stream, dtype, {count}));
    }
  }
  check(shard.state.size() == declared.size(), "optimizer: ", name_of(options_.rule), " keeps ",
        declared.size(), " tensors of state, not ", shard.state.size());
  for (std::size_t i = 0; i < declared.size(); ++i) {
    check_part(shard, shard.state[i], declared[i].name);
  }
}

const std::vector<FlatShard>& Optimizer::shards() const {
  if (on_host_) {
    on_host_->finish();
  }
  return shards_;
}

StepState* Optimizer::device_state() const { return static_cast<StepState*>(state_.data()); }

const Tensor& Optimizer::squared_norm() {
  const OpScope scope(*stream_, "gradient_norm", OpKind::optimizer);
  std::int64_t first = 0;
  for (const FlatShard& shard : shards_) {
    const std::int64_t count = num_norm_partials(shard.grad.numel());
    launch(*stream_, SquaredNormPartials{.grad = shard.grad,
                                         .unit_flags = shard.unit_flags,
                                         .partials = partials_.range(first, {count})});
    first += count;
  }
  launch(*stream_, SumPartials{.partials = partials_, .sum = squared_norm_});
  return squared_norm_;
}

void Optimizer::update(std::int64_t samples) {
  {
    const OpScope scope(*stream_, "step_plan", OpKind::optimizer);
    launch(*stream_, StepPlan{.rule = options_.rule,
                              .rules = rules_,
                              .squared_norm = squared_norm_,
                              .samples = samples,
                              .state = device_state(),
                              .loss_scale = loss_scale_});
  }
  if (on_host_) {
    on_host_->start(&device_state()->update);
  }
  for (const FlatShard& shard : shards_) {
    if (shard.on_device()) {
      UpdateBuffers buffers{.grad = shard.grad,
                            .form = shard.form,
                            .master = shard.master,
                            .value = shard.value,
                            .low = shard.low,
                            .state = {},
                            .unit_flags = shard.unit_flags};
      std::ranges::copy(shard.state, buffers.state.begin());
      launch_update(*stream_, options_.rule, buffers, &device_state()->update);
    }
  }
}

void Optimizer::publish_report() {
  const OpScope scope(*stream_, "publish_report", OpKind::optimizer);
  reports_.publish(state_);
}

void Optimizer::step(std::span<Communicator* const> groups, std::int64_t samples) {
  const OpScope phase(*stream_, OpKind::optimizer);
  squared_norm();
  for (Communicator* group : groups) {
    group->all_reduce(squared_norm_, Reduce::sum, *stream_);
  }
  update(samples);
  publish_report();
}

StepReport Optimizer::report(int age) const {
  const OpScope scope(*stream_, "read_report", OpKind::wait);
  StepState state;
  std::memcpy(&state, reports_.bytes(age).data(), sizeof state);
  return report_of(state);
}

Tensor Optimizer::grad_scale(std::int64_t num_parts) {
  check(num_parts > 0, "optimizer: a gradient cannot be the mean of ", num_parts, " parts");
  const OpScope scope(*stream_, "grad_scale", OpKind::optimizer);
  Tensor scale = Tensor::empty(*stream_, DType::fp32, {1});
  launch(*stream_, ScaleAdd{.x = loss_scale_,
                            .y = scale,
                            .factor = static_cast<float>(1.0 / static_cast<double>(num_parts))});
  return scale;
}

StepState Optimizer::state() const {
  if (on_host_) {
    on_host_->finish();
  }
  StepState state;
  stream_->copy(&state, state_.data(), sizeof state);
  stream_->synchronize();
  return state;
}

void Optimizer::set_state(const StepState& state) {
  const auto scale = static_cast<float>(state.loss_scale.scale);
  stream_->copy(state_.data(), &state, sizeof state);
  stream_->copy(loss_scale_.data(), &scale, sizeof scale);
  stream_->synchronize();
}

std::size_t Optimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const FlatShard& shard : shards_) {
    for (const Tensor& tensor : shard.state) {
      bytes += shard.on_device() ? tensor.bytes() : 0;
    }
  }
  return bytes;
}

}  // namespace bloomery
