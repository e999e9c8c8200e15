// What is read of forward passes without gradients, besides losses. Readers wait for the device.
#pragma once

#include <vector>

#include "train/step/executor.h"

namespace bloomery {

// The outputs of a task's head, or of a retriever the ranks of contexts, one after another.
class AnswerReader final : public PassReader {
 public:
  explicit AnswerReader(Stream& stream) : stream_(stream) {}
  void read(const Batch& batch, const Metrics& metrics) override;

  std::vector<float> answers;

 private:
  Stream& stream_;
};

// How likely answers are, each with its number.
class LogpReader final : public PassReader {
 public:
  explicit LogpReader(Stream& stream) : stream_(stream) {}
  void read(const Batch& batch, const Metrics& metrics) override;

  std::vector<std::int64_t> answers;
  std::vector<float> logps;

 private:
  Stream& stream_;
};

}  // namespace bloomery
