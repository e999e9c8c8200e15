// Which tokens of a sequence each rank of the context axis holds.
#pragma once

#include "autograd/batch.h"
#include "comm/mesh.h"

namespace bloomery {

struct Piece {
  std::int64_t begin = 0, count = 0;
};
using Pieces = std::vector<Piece>;

std::int64_t num_tokens(const Pieces& pieces);

// Of sequences of `length` tokens, what a rank of a ring holds: a piece as far from the front as
// another is from the back, so that under a causal mask all ranks have equally much to do.
Pieces ring_pieces(std::int64_t length, int rank, int ranks);

// What a rank holds of each sequence: among the ranks of a ring the pieces above; of these, where
// Ulysses divides them, a consecutive part, or such a part of each of their chunks of so many
// tokens (sequence_chunks.h; 0: there are none).
struct SequenceShare {
  int ring_rank = 0, ring = 1;
  int ulysses_rank = 0, ulysses = 1;
  std::int64_t chunk = 0;

  bool divides() const { return ring * ulysses > 1; }
  // Of sequences of `length` tokens: what the batch of this rank holds, what its Batch::whole
  // stands for, and what that one's does, as far as there are any. The last is the sequence itself,
  // or all pieces of a ring, rank after rank.
  std::vector<Pieces> pieces(std::int64_t length) const;
};

SequenceShare sequence_share(const Mesh& mesh, std::int64_t chunk);

}  // namespace bloomery
