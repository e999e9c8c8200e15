// Which tokens of a sequence each rank of the context axis holds.
#pragma once

#include "autograd/batch.h"
#include "comm/mesh.h"

namespace bloomery {

struct Piece {
  std::int64_t begin = 0, count = 0;
};
using Pieces = std::vector<Piece>;

// Of sequences of `length` tokens, what a rank of a ring holds: a piece as far from the front as
// another is from the back, so that under a causal mask all ranks have equally much to do.
Pieces ring_pieces(std::int64_t length, int rank, int ranks);

// The part of a batch of whole sequences that this rank holds, which keeps the batch as its
// `whole`: among the ranks of a ring the pieces above; of these, where Ulysses divides them, a
// consecutive part, whose whole is then all that the ring's rank holds, or such a part of each of
// their chunks of so many tokens (sequence_chunks.h; 0: there are none). The batch itself where
// there is one rank.
Batch part_of_sequences(Batch batch, const Mesh& mesh, std::int64_t chunk, Stream& stream);

// The elements of these pieces of every row of `length`; null of null.
Tensor pieces_of(const Tensor& rows, std::int64_t length, const Pieces& pieces, Stream& stream);

}  // namespace bloomery
