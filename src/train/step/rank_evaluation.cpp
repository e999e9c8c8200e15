// What a rank computes without learning from it.
#include <algorithm>

#include "train/step/rank.h"
#include "train/step/teacher.h"

namespace bloomery {

// Without gradients and dropout.
void Rank::run_forward(std::int64_t num_micro_batches, const BatchSource& batch,
                       const Report& report) {
  store_->begin_pass(Pass::evaluation);
  if (fp8_) {
    fp8_->begin_pass();
  }
  if (grid_layers_) {
    grid_layers_->begin_pass(completed_steps_, false);
  }
  executor_->run(forward_only(mesh_->coordinate(Axis::pipeline), pipeline_shape(num_micro_batches)),
                 {.batch = batch, .grad_scale = {}, .training = false, .report = report});
  hear_of_failures();
}

Rank::AnswerLogps Rank::answer_logps(std::int64_t num_micro_batches, const BatchSource& batch) {
  AnswerLogps all;
  run_forward(num_micro_batches, batch, [&](const Batch& of, const Metrics& metrics) {
    if (!metrics.answer_logps) {
      return;  // of other stages
    }
    const std::vector<std::int64_t> answers = of.samples.to_host<std::int64_t>(*stream_);
    all.answers.insert(all.answers.end(), answers.begin(), answers.end());
    Readback numbers(*stream_, metrics.answer_logps.dtype(), metrics.answer_logps.numel());
    numbers.publish(metrics.answer_logps);
    for (const double logp : numbers.read(0)) {
      all.logps.push_back(static_cast<float>(logp));
    }
  });
  return all;
}

std::vector<float> Rank::answers(std::int64_t num_micro_batches, const BatchSource& batch) {
  std::vector<float> all;
  run_forward(num_micro_batches, batch, [&](const Batch&, const Metrics& metrics) {
    if (metrics.class_logits) {
      const std::vector<float> more = metrics.class_logits.to_host<float>(*stream_);
      all.insert(all.end(), more.begin(), more.end());
    }
    if (metrics.context_ranks) {
      const std::vector<std::int32_t> more = metrics.context_ranks.to_host<std::int32_t>(*stream_);
      all.insert(all.end(), more.begin(), more.end());
    }
  });
  stream_->synchronize();
  return all;
}

Rank::Losses Rank::evaluate(std::int64_t num_micro_batches, const BatchSource& batch) {
  const std::int64_t parts = num_micro_batches * mesh_->degree(Axis::data);
  clear_statistics();
  run_forward(num_micro_batches, batch, [&](const Batch&, const Metrics& metrics) {
    report(metrics, 1 / static_cast<double>(parts));
  });
  Losses losses = mean_losses();
  if (teacher_) {  // which has no part in evaluations
    std::erase_if(losses,
                  [&](const NamedLoss& loss) { return loss.name == teacher_->loss_name(); });
  }
  return losses;
}

}  // namespace bloomery
