// A micro-batch of GPT samples on the host: what a model reads, as plain arrays.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "data/samples/data_options.h"
#include "data/samples/sample_source.h"
#include "device/memory.h"

namespace bloomery {

// What happens at the ends of documents.
struct DocumentRules {
  std::optional<TokenId> eod;
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
};
// Asking for any of the three without a known end-of-document token is an Error.
DocumentRules document_rules(const DataOptions& options, std::optional<TokenId> eod);

// Arrays in one piece of memory from which a GPU copies at full speed. Token t is position
// t % length() of sequence t / length().
class GptBatch {
 public:
  GptBatch(DeviceKind kind, std::int64_t num_sequences, std::int64_t length);

  std::int64_t num_sequences() const { return num_sequences_; }
  std::int64_t length() const { return length_; }

  std::span<std::int64_t> samples;                    // [sequences], in consumed order
  std::span<std::int32_t> tokens, labels, positions;  // [sequences * length]
  std::span<std::int32_t> key_begin;                  // the first key a query may see
  std::span<float> loss_mask;
  bool has_key_begin = false;  // else every query may see all keys before it
  bool has_loss_mask = false;  // else it is all ones

 private:
  std::int64_t num_sequences_, length_;
  PinnedMemory memory_;
};

// Reads the samples `chosen` into the batch. `first_consumed` is the place of the first of them in
// the order of consumption, the coordinate for dropout.
void fill(GptBatch& batch, const SampleSource& source, std::span<const std::int64_t> chosen,
          std::int64_t first_consumed, const DocumentRules& rules);

}  // namespace bloomery
