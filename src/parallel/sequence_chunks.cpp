#include "parallel/sequence_chunks.h"

#include <algorithm>

#include "autograd/batch_fields.h"
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
  using Per = BatchField::Per;
  const auto of = [&](const Tensor& all, Per per) {
    if (per == Per::sequence && all.numel() == batch.num_sequences) {
      return all.range(sequence, {1});
    }
    // Places may be those of all sequences.
    const std::int64_t first = all.numel() == batch.length ? 0 : sequence * batch.length;
    return all.range(first + piece.begin, {piece.count});
  };
  Batch part = batch;
  part.num_sequences = 1;
  part.length = piece.count;
  for (const BatchField& field : kBatchFields) {
    const bool is_cut =
        field.is_per_token() || field.per == Per::place || field.per == Per::sequence;
    if (Tensor& tensor = part.*field.tensor; tensor && is_cut) {
      tensor = of(tensor, field.per);
    }
  }
  if (batch.whole) {
    const std::int64_t ranks = batch.whole->length / batch.length;
    part.whole = std::make_shared<const Batch>(
        piece_of(*batch.whole, sequence, {piece.begin * ranks, piece.count * ranks}));
  }
  return part;
}

}  // namespace bloomery
