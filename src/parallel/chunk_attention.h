// Causal attention of a sequence that is computed chunk by chunk (sequence_chunks.h): the queries
// of a chunk see its own keys and those of the chunks before it, which wait on the device or on the
// host. What each gives is merged by its log-sum-exp.
#pragma once

#include "ops/attention/attention.h"
#include "parallel/offloaded_tensors.h"

namespace bloomery {

// Keys and values of the chunks of one sequence in one layer, and in a backward pass, which takes
// the chunks from the last to the first, what later chunks added to their gradients.
struct KeysOfChunks {
  // `ends`: behind the last token of each chunk.
  KeysOfChunks(Stream& compute, OffloadPool* offload_pool, std::vector<std::int64_t> ends);

  std::int64_t begin_of(std::int64_t chunk) const {
    return chunk == 0 ? 0 : ends[static_cast<std::size_t>(chunk - 1)];
  }
  std::int64_t end_of(std::int64_t chunk) const { return ends[static_cast<std::size_t>(chunk)]; }

  std::vector<std::int64_t> ends;
  std::vector<Tensor> places;  // of the keys, by chunk; null where a chunk is not known yet
  OffloadedTensors keys, gradients;
};

// Leaves the keys and values of a chunk, whose tokens are the context's batch, for later ones:
// where it is to be computed after them.
void keep_keys(Context& context, const Value& qkv, const AttentionOptions& options,
               KeysOfChunks& keys, std::int64_t chunk);

// As attention() of the chunk's tokens, over all keys up to theirs: it finds those of the chunks
// before it in `keys`, and leaves its own there unless they are. `keys` must be there until the
// backward pass is over. There is no relative bias.
Value chunk_attention(Context& context, const Value& qkv, const AttentionOptions& options,
                      KeysOfChunks& keys, std::int64_t chunk);

}  // namespace bloomery
