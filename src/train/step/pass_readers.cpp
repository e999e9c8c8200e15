#include "train/step/pass_readers.h"

#include "tensor/readback.h"

namespace bloomery {

void AnswerReader::read(const Batch&, const Metrics& metrics) {
  if (metrics.class_logits) {
    const std::vector<float> more = metrics.class_logits.to_host<float>(stream_);
    answers.insert(answers.end(), more.begin(), more.end());
  }
  if (metrics.context_ranks) {
    const std::vector<std::int32_t> more = metrics.context_ranks.to_host<std::int32_t>(stream_);
    answers.insert(answers.end(), more.begin(), more.end());
  }
}

void LogpReader::read(const Batch& batch, const Metrics& metrics) {
  if (!metrics.answer_logps) {
    return;  // of other stages
  }
  const std::vector<std::int64_t> more = batch.samples.to_host<std::int64_t>(stream_);
  answers.insert(answers.end(), more.begin(), more.end());
  Readback numbers(stream_, metrics.answer_logps.dtype(), metrics.answer_logps.numel());
  numbers.publish(metrics.answer_logps);
  for (const double logp : numbers.read(0)) {
    logps.push_back(static_cast<float>(logp));
  }
}

}  // namespace bloomery
