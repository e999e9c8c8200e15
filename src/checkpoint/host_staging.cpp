#include "checkpoint/host_staging.h"

#include "base/round_up.h"
#include "checkpoint/boxes.h"

namespace bloomery {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

void HostStaging::add(const std::string& tensor, DType dtype, const Box& box, const void* data) {
  const SnapshotPiece piece{.tensor = tensor, .dtype = dtype, .box = box};
  sources_.push_back({.piece = piece, .from = data, .copy = {}, .offset = bytes_});
  bytes_ += round_up(piece.bytes(), kAlignment);
}

void HostStaging::add_made(const std::string& tensor, DType dtype, const Box& box, Copy copy) {
  add(tensor, dtype, box, nullptr);
  sources_.back().copy = std::move(copy);
}

void HostStaging::add_range(const std::string& tensor, DType dtype, const Box& box,
                            std::int64_t first, std::int64_t count, const void* data) {
  const auto* from = static_cast<const std::byte*>(data);
  for (const Box& part : boxes_of_range(box, first, count)) {
    add(tensor, dtype, part, from);
    from += static_cast<std::size_t>(part.extent.numel()) * size_of(dtype);
  }
}

std::shared_ptr<PinnedMemory> HostStaging::memory() {
  const bool free = memory_ != nullptr && memory_.use_count() == 1 && memory_->bytes() >= bytes_;
  if (!free) {
    memory_ = std::make_shared<PinnedMemory>(stream_.device().kind(), bytes_);
  }
  return memory_;
}

void HostStaging::reserve() { memory(); }

Snapshot HostStaging::take(const RunState& state) {
  const std::shared_ptr<PinnedMemory> host = memory();
  Snapshot snapshot{.state = state, .pieces = {}};
  for (const Source& source : sources_) {
    SnapshotPiece piece = source.piece;
    std::byte* to = static_cast<std::byte*>(host->data()) + source.offset;
    if (source.copy) {
      source.copy(to);
    } else {
      stream_.copy(to, source.from, piece.bytes());
    }
    piece.data = to;
    piece.owner = host;
    snapshot.pieces.push_back(std::move(piece));
  }
  stream_.synchronize();
  return snapshot;
}

}  // namespace bloomery
