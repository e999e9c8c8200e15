// From samples on the host to the tensors of a micro-batch: by name.
#pragma once

#include <optional>

#include "autograd/batch.h"
#include "samples/host_batch.h"

namespace bloomery {

// Tensors that every micro-batch of a size has, and those that stand for fields that the samples
// leave out.
class BatchUpload {
 public:
  // For batches with these fields, of so many samples. A field that no model reads is an Error.
  BatchUpload(Stream& stream, const SampleFields& fields, std::int64_t num_samples);

  // Copies in the stream: the host's memory must stay until they are over.
  Batch enqueue(const HostBatch& host) const;

 private:
  Stream& stream_;
  Batch common_;
  std::optional<Batch> encoder_;
};

// One batch; waits for the copies.
Batch upload(const HostBatch& host, Stream& stream);

// Random tokens; samples are numbered from `first_sample`.
HostBatch random_batch(std::int64_t num_sequences, std::int64_t length, std::int64_t vocabulary,
                       std::uint64_t seed, std::int64_t first_sample);
// Samples of any kind: random tokens and labels, half of the places in a mask and half of the
// flags set, and padding in the second half of each sequence.
HostBatch random_batch(const SampleFields& fields, std::int64_t num_sequences,
                       std::int64_t vocabulary, std::uint64_t seed, std::int64_t first_sample);

}  // namespace bloomery
