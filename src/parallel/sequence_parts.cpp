#include "parallel/sequence_parts.h"

#include <algorithm>

#include "parallel/sequence_chunks.h"

namespace bloomery {
namespace {

// What `inner`, pieces of what `outer` leaves of a sequence, are in the sequence itself.
Pieces pieces_within(const Pieces& outer, const Pieces& inner) {
  Pieces all;
  for (const Piece& wanted : inner) {
    std::int64_t first = 0;  // of an outer piece, in what all of them leave
    for (const Piece& piece : outer) {
      const std::int64_t begin = std::max(first, wanted.begin);
      const std::int64_t end = std::min(first + piece.count, wanted.begin + wanted.count);
      if (begin < end) {
        all.push_back({piece.begin + begin - first, end - begin});
      }
      first += piece.count;
    }
  }
  return all;
}

}  // namespace

std::int64_t num_tokens(const Pieces& pieces) {
  std::int64_t count = 0;
  for (const Piece& piece : pieces) {
    count += piece.count;
  }
  return count;
}

Pieces ring_pieces(std::int64_t length, int rank, int ranks) {
  const std::int64_t count = length / (2 * ranks);
  return {{rank * count, count}, {length - (rank + 1) * count, count}};
}

std::vector<Pieces> SequenceShare::pieces(std::int64_t length) const {
  check(length % ((ring > 1 ? 2 * ring : 1) * ulysses) == 0, "sequences of ", length,
        " tokens cannot be divided among ", ring * ulysses, " sequence-parallel ranks");
  std::vector<Pieces> all{{{0, length}}};
  if (ring > 1) {
    all.front().clear();
    for (int rank = 0; rank < ring; ++rank) {
      const Pieces each = ring_pieces(length, rank, ring);
      all.front().insert(all.front().end(), each.begin(), each.end());
    }
    all.insert(all.begin(), ring_pieces(length, ring_rank, ring));
  }
  if (ulysses > 1) {
    const std::int64_t count = num_tokens(all.front());
    all.insert(all.begin(),
               pieces_within(all.front(), chunk_pieces(count, chunk > 0 ? chunk : count,
                                                       ulysses_rank, ulysses)));
  }
  return all;
}

SequenceShare sequence_share(const Mesh& mesh, std::int64_t chunk) {
  return {.ring_rank = mesh.coordinate(Axis::ring),
          .ring = mesh.degree(Axis::ring),
          .ulysses_rank = mesh.coordinate(Axis::ulysses),
          .ulysses = mesh.degree(Axis::ulysses),
          .chunk = chunk};
}

}  // namespace bloomery
