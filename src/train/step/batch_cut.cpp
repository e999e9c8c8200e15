#include "train/step/batch_cut.h"

#include <algorithm>
#include <cstring>

#include "autograd/batch_fields.h"
#include "base/error.h"

namespace bloomery {
namespace {

// Null: the array stays whole.
const Pieces* pieces_of(const SampleField& field, const BatchCut& cut) {
  const BatchField* const known = find_batch_field(field.name);
  if (known == nullptr || !known->is_per_token()) {
    return nullptr;
  }
  return known->per == BatchField::Per::query ? &cut.queries : &cut.tokens;
}

// A sample may have several sequences.
void copy_pieces(std::span<const std::byte> from, std::span<std::byte> to, std::size_t sequence,
                 std::size_t token, const Pieces& pieces) {
  std::byte* target = to.data();
  for (; !from.empty(); from = from.subspan(sequence)) {
    for (const Piece& piece : pieces) {
      const std::size_t size = static_cast<std::size_t>(piece.count) * token;
      std::memcpy(target, from.data() + static_cast<std::size_t>(piece.begin) * token, size);
      target += size;
    }
  }
}

}  // namespace

SampleFields cut_fields(const SampleFields& fields, const BatchCut& cut) {
  SampleFields left = fields;
  for (SampleField& field : left) {
    if (const Pieces* const pieces = pieces_of(field, cut)) {
      const std::int64_t length = num_tokens(*pieces);
      field.shape = field.shape.rank() == 1 ? Shape{length} : Shape{field.shape[0], length};
    }
  }
  return left;
}

void copy_cut(const HostBatch& from, const HostBatch& to, const BatchCut& cut) {
  for (const SampleField& field : from.fields()) {
    const std::span<const std::byte> source = from.bytes(field);
    const std::span<std::byte> target = to.bytes(*to.find(field.name));
    if (const Pieces* const pieces = pieces_of(field, cut)) {
      const std::size_t token = size_of(field.dtype);
      copy_pieces(source, target, static_cast<std::size_t>(field.shape.back()) * token, token,
                  *pieces);
    } else {
      std::ranges::copy(source, target.begin());
    }
  }
  std::ranges::copy(from.samples(), to.samples().begin());
  if (to.find("key_end") != nullptr) {
    for (std::int32_t& end : to.array<std::int32_t>("key_end")) {
      end = std::min(end, static_cast<std::int32_t>(cut.num_keys));
    }
  }
}

}  // namespace bloomery
