#include "parallel/distillation.h"

#include "ops/loss/distill.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

DistillPass::DistillPass(Context& context, const Distillation& distillation, Communicator& ranks,
                         std::int64_t num_valid, const Tensor& inverse)
    : context_(context),
      stream_(context.stream),
      distillation_(distillation),
      ranks_(ranks),
      num_valid_(num_valid),
      inverse_(inverse) {
  const TeacherHead& teacher = distillation.teacher;
  check(distillation.temperature > 0, "distillation: the temperature ", distillation.temperature,
        " must be above 0");
  losses_ = Tensor::empty(stream_, inverse.dtype(), {teacher.x.shape()[0]});
}

Tensor DistillPass::run(std::int64_t begin, std::int64_t end, const Tensor& logits, bool gradient) {
  const TeacherHead& head = distillation_.teacher;
  check(head.weight->value.shape()[0] == logits.shape()[1] && head.x.dtype() == logits.dtype(),
        "distillation: the teacher's logits, ", head.x.dtype(), " of ",
        head.weight->value.shape()[0], " columns, must be like the student's, ", logits.dtype(),
        " of ", logits.shape()[1]);
  if (!buffer_) {
    buffer_ = Tensor::empty(stream_, logits.dtype(), logits.shape());
  }
  const std::int64_t rows = end - begin;
  Tensor teacher = buffer_.slice(0, rows);
  launch(stream_, Matmul{.a = head.x.slice(begin, end),
                         .b = head.weight->value,
                         .d = teacher,
                         .transpose_b = true,
                         .bias = head.bias != nullptr ? ConstView(head.bias->value) : ConstView()});
  const double temperature = distillation_.temperature, inverse_temperature = 1 / temperature;
  const double scale = distillation_.weight * temperature * temperature;
  const Tensor statistics = Tensor::empty(stream_, inverse_.dtype(), {7, rows});
  const Tensor local_max = statistics.slice(0, 2), max = statistics.slice(2, 4);
  const Tensor sums = statistics.slice(4, 7);
  launch(stream_, DistillStatistics{.student = logits,
                                    .teacher = teacher,
                                    .num_valid = num_valid_,
                                    .inverse_temperature = inverse_temperature,
                                    .local_max = local_max,
                                    .max = max,
                                    .sums = sums});
  if (ranks_.size() > 1) {
    ranks_.all_reduce(max, Reduce::max, stream_);
    launch(stream_, DistillRescale{.local_max = local_max,
                                   .max = max,
                                   .inverse_temperature = inverse_temperature,
                                   .sums = sums});
    ranks_.all_reduce(sums, Reduce::sum, stream_);
  }
  launch(stream_, DistillTokens{.max = max,
                                .sums = sums,
                                .inverse_temperature = inverse_temperature,
                                .scale = scale,
                                .losses = losses_.slice(begin, end)});
  if (!gradient) {
    return {};
  }
  const Tensor& mask = context_.batch.loss_mask;
  launch(stream_, DistillGradient{.student = logits,
                                  .teacher = teacher,
                                  .num_valid = num_valid_,
                                  .inverse_temperature = inverse_temperature,
                                  .scale = scale,
                                  .max = max,
                                  .sums = sums,
                                  .mask = mask ? ConstView(mask.slice(begin, end)) : ConstView(),
                                  .inverse = inverse_,
                                  .grad_scale = context_.batch.grad_scale});
  return teacher;
}

Tensor DistillPass::mean_loss() const {
  Tensor loss = Tensor::empty(stream_, losses_.dtype(), {1});
  launch(
      stream_,
      LossMean{
          .losses = losses_, .mask = context_.batch.loss_mask, .inverse = inverse_, .loss = loss});
  return loss;
}

}  // namespace bloomery
