// Long sequences in chunks: a layer computes so many tokens of a sequence at a time, so that what
// is wide (queries, keys and values, the inside of an MLP, what the backward pass needs of both)
// exists for one chunk only. Between layers whole sequences pass.
#pragma once

#include <optional>

#include "autograd/context.h"
#include "parallel/offloaded_tensors.h"
#include "parallel/sequence_parts.h"

namespace bloomery {

// How passes are divided.
struct SequenceChunks {
  std::int64_t length = 0;  // tokens of a whole sequence in a chunk
  // Where keys and values of chunks wait, and their gradients; null: on the device.
  std::unique_ptr<OffloadPool> offload_pool;
};

// Whether the layers of a pass compute sequences in chunks.
bool in_sequence_chunks(const Context& context);

// Of sequences of `length` tokens in all, what a rank holds of each chunk: of `ranks` that divide a
// chunk in parts of equal length, this one. In the order of the sequence.
Pieces chunk_pieces(std::int64_t length, std::int64_t chunk, int rank, int ranks);

// A piece of a sequence of the batch, as a batch of its own that reads the same memory. Where the
// batch holds parts of sequences, of each chunk one, `piece` is among those held here, and the
// chunk is the piece's whole.
Batch piece_of(const Batch& batch, std::int64_t sequence, const Piece& piece);

}  // namespace bloomery
