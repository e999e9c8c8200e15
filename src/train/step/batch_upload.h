// From samples on the host to the tensors of a micro-batch: by name.
#pragma once

#include <memory>
#include <optional>

#include "autograd/batch.h"
#include "train/step/batch_cut.h"

namespace bloomery {

// Tensors that every micro-batch of a size has, and those that stand for fields that the samples
// leave out.
class BatchUpload {
 public:
  // For so many samples with these fields, or the first `length` tokens of each (0: all), of which
  // the rank holds its share. A field that no model reads is an Error.
  BatchUpload(Stream& stream, const SampleFields& fields, std::int64_t num_samples,
              const SequenceShare& share = {}, std::int64_t length = 0);

  // What of the samples is uploaded. Where it is not all of them, cut() copies it to a batch with
  // these fields.
  const SampleFields& fields() const { return fields_; }
  bool cuts() const { return cuts_; }
  void cut(const HostBatch& samples, const HostBatch& to) const { copy_cut(samples, to, cut_); }

  // Copies in the stream: the host's memory must stay until they are over.
  Batch enqueue(const HostBatch& host) const;

 private:
  Stream& stream_;
  SampleFields fields_;
  bool cuts_, exchanges_heads_;
  BatchCut cut_;
  Batch common_;
  std::optional<Batch> encoder_;
};

// One batch, of which the rank holds its share; waits for the copies.
Batch upload(const HostBatch& host, Stream& stream, const SequenceShare& share = {});

// Random tokens; samples are numbered from `first_sample`.
HostBatch random_batch(std::int64_t num_sequences, std::int64_t length, std::int64_t vocabulary,
                       std::uint64_t seed, std::int64_t first_sample);
// Samples of any kind: random tokens and labels, half of the places in a mask and half of the
// flags set, and padding in the second half of each sequence.
HostBatch random_batch(const SampleFields& fields, std::int64_t num_sequences,
                       std::int64_t vocabulary, std::uint64_t seed, std::int64_t first_sample);

}  // namespace bloomery
