#include "parallel/sequence_chunks.h"

#include <algorithm>

#include "autograd/features.h"

namespace bloomery {

bool in_sequence_chunks(const Context& context) {
  return context.features.sequence_chunks != nullptr && context.cache == nullptr;
}

Pieces chunk_pieces(std::int64_t length, std::int64_t chunk, int rank, int ranks) {
  check(length % ranks == 0 && chunk % ranks == 0, "sequences of ", length, " tokens in chunks of ",
        chunk, " cannot be divided among ", ranks, " sequence-parallel ranks");
  Pieces pieces;
  for (std::int64_t begin = 0; begin < length; begin += chunk) {
    const std::int64_t count = std::min(chunk, length - begin) / ranks;
    pieces.push_back({begin + rank * count, count});
  }
  return pieces;
}

Batch piece_of(const Batch& batch, std::int64_t sequence, const Piece& piece) {
  // Of something that each token has, or each position of all sequences.
  const auto of = [&](const Tensor& tensor) {
    const std::int64_t first = tensor.numel() == batch.length ? 0 : sequence * batch.length;
    return tensor ? tensor.range(first + piece.begin, {piece.count}) : Tensor();
  };
  Batch part = batch;
  part.num_sequences = 1;
  part.length = piece.count;
  for (Tensor Batch::*const field :
       {&Batch::tokens, &Batch::labels, &Batch::loss_mask, &Batch::positions, &Batch::token_types,
        &Batch::places, &Batch::key_begin, &Batch::key_end}) {
    part.*field = of(batch.*field);
  }
  if (batch.samples) {
    part.samples = batch.samples.numel() == batch.num_sequences ? batch.samples.range(sequence, {1})
                                                                : of(batch.samples);
  }
  if (batch.whole) {
    const std::int64_t ranks = batch.whole->length / batch.length;
    part.whole = std::make_shared<const Batch>(
        piece_of(*batch.whole, sequence, {piece.begin * ranks, piece.count * ranks}));
  }
  return part;
}

}  // namespace bloomery
