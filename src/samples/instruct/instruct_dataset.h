// Samples of instruction data: one record each, padded, or several packed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "samples/dataset.h"
#include "samples/instruct/encoded_records.h"

namespace bloomery {

// Which examples make up the sequences of a split.
struct InstructSamples {
  std::shared_ptr<const EncodedRecords> records;
  std::vector<std::int64_t> examples;  // of all sequences, one after another; of pairs, two each
  std::vector<std::int64_t> ends;      // of each sequence, among them
  std::string name;                    // Dataset::description

  std::int64_t size() const { return std::ssize(ends); }
  void add(std::span<const std::int64_t> sequence);
  std::span<const std::int64_t> sequence(std::int64_t number) const;
};

// Log-probabilities under a reference model, one of each example of pairs: given once, by whoever
// comes first.
class ReferenceValues {
 public:
  void set(std::vector<float> values) const {
    std::call_once(once_, [&] { values_ = std::move(values); });
  }
  const std::vector<float>& values() const { return values_; }

 private:
  mutable std::once_flag once_;
  mutable std::vector<float> values_;
};

// tokens, labels and loss_mask, and what else the arrangement has.
SampleFields instruct_fields(std::int64_t length, Arrangement arrangement);

// Goes through the sequences again and again, each time in a new order: torch.randperm after
// manual_seed(seed + pass), or as they are where `shuffle` is false.
class InstructDataset : public Dataset {
 public:
  struct Options {
    std::int64_t length = 0;
    TokenId padding = 0;
    Arrangement arrangement = Arrangement::alone;
    bool shuffle = true;
    std::int64_t seed = 0;
    std::shared_ptr<const ReferenceValues> reference;  // of pairs; null: all are 0
  };
  InstructDataset(std::shared_ptr<const InstructSamples> samples, std::int64_t size,
                  const Options& options);

  std::int64_t size() const override { return size_; }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return samples_->name; }

 private:
  std::shared_ptr<const InstructSamples> samples_;
  std::int64_t size_;
  Options options_;
  SampleFields fields_;
  std::vector<std::vector<std::uint32_t>> orders_;  // of each pass
};

}  // namespace bloomery
