// Host batches cut along their sequences, by what each array has a number for (batch_fields.h).
#pragma once

#include "parallel/sequence_parts.h"
#include "samples/host_batch.h"

namespace bloomery {

// What is left of each sequence.
struct BatchCut {
  Pieces tokens, queries;     // of arrays of either (BatchField::Per)
  std::int64_t num_keys = 0;  // keys behind so many are none

  static BatchCut first_tokens(std::int64_t length) {
    return {{{0, length}}, {{0, length}}, length};
  }
};

// Of the samples that are left. The arrays of an encoder stay whole.
SampleFields cut_fields(const SampleFields& fields, const BatchCut& cut);

// `to` has as many samples, with the fields of cut_fields.
void copy_cut(const HostBatch& from, const HostBatch& to, const BatchCut& cut);

}  // namespace bloomery
