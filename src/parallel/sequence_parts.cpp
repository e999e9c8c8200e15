#include "parallel/sequence_parts.h"

#include "parallel/sequence_chunks.h"

namespace bloomery {
namespace {

std::int64_t total(const Pieces& pieces) {
  std::int64_t count = 0;
  for (const Piece& piece : pieces) {
    count += piece.count;
  }
  return count;
}

Batch cut(Batch batch, const Pieces& pieces, Stream& stream) {
  Batch part = batch;
  part.length = total(pieces);
  for (Tensor Batch::*const field :
       {&Batch::tokens, &Batch::labels, &Batch::loss_mask, &Batch::positions, &Batch::token_types,
        &Batch::places, &Batch::key_begin, &Batch::key_end}) {
    part.*field = pieces_of(batch.*field, batch.length, pieces, stream);
  }
  if (batch.samples.numel() != batch.num_sequences) {
    part.samples = pieces_of(batch.samples, batch.length, pieces, stream);
  }
  part.whole = std::make_shared<const Batch>(std::move(batch));
  return part;
}

}  // namespace

Tensor pieces_of(const Tensor& rows, std::int64_t length, const Pieces& pieces, Stream& stream) {
  if (!rows) {
    return {};
  }
  const std::int64_t count = rows.numel() / length, part = total(pieces);
  Tensor result = Tensor::empty(stream, rows.dtype(), {count * part});
  for (std::int64_t row = 0, to = 0; row < count; ++row) {
    for (const Piece& piece : pieces) {
      const Tensor from = rows.range(row * length + piece.begin, {piece.count});
      stream.copy(result.range(to, {piece.count}).data(), from.data(), from.bytes());
      to += piece.count;
    }
  }
  return result;
}

Pieces ring_pieces(std::int64_t length, int rank, int ranks) {
  const std::int64_t count = length / (2 * ranks);
  return {{rank * count, count}, {length - (rank + 1) * count, count}};
}

Batch part_of_sequences(Batch batch, const Mesh& mesh, std::int64_t chunk, Stream& stream) {
  const int ring = mesh.degree(Axis::ring), ulysses = mesh.degree(Axis::ulysses);
  if (ring * ulysses == 1) {
    return batch;
  }
  check(batch.length % ((ring > 1 ? 2 * ring : 1) * ulysses) == 0, "sequences of ", batch.length,
        " tokens cannot be divided among ", ring * ulysses, " sequence-parallel ranks");
  check(!batch.encoder && !batch.output_rows,
        "sequences of an encoder, or of which some rows are asked for, cannot be divided");
  if (ring > 1) {
    const Pieces pieces = ring_pieces(batch.length, mesh.coordinate(Axis::ring), ring);
    batch = cut(std::move(batch), pieces, stream);
  }
  if (ulysses > 1) {
    const Pieces pieces = chunk_pieces(batch.length, chunk > 0 ? chunk : batch.length,
                                       mesh.coordinate(Axis::ulysses), ulysses);
    batch = cut(std::move(batch), pieces, stream);
    batch.key_begin = batch.key_end = {};  // attention reads those of the whole
  }
  return batch;
}

}  // namespace bloomery
