#include "checkpoint/piece_file.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "checkpoint/block_output.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

std::vector<const SnapshotPiece*> in_file_order(const std::vector<SnapshotPiece>& pieces) {
  std::vector<const SnapshotPiece*> ordered;
  for (const SnapshotPiece& piece : pieces) {
    ordered.push_back(&piece);
  }
  std::ranges::stable_sort(ordered, std::greater{},
                           [](const SnapshotPiece* piece) { return size_of(piece->dtype); });
  return ordered;
}

// A tensor of which the file has one piece keeps its name; several are numbered.
std::vector<SafetensorsItem> items_of(const std::vector<const SnapshotPiece*>& pieces) {
  std::map<std::string, int> count, next;
  for (const SnapshotPiece* piece : pieces) {
    ++count[piece->tensor];
  }
  std::vector<SafetensorsItem> items;
  for (const SnapshotPiece* piece : pieces) {
    const std::string& name = piece->tensor;
    items.push_back({count[name] > 1 ? concat(name, "#", next[name]++) : name, piece->dtype,
                     piece->box.extent});
  }
  return items;
}

}  // namespace

PieceFile::PieceFile(std::string name, const std::vector<SnapshotPiece>& pieces, std::int64_t step)
    : name_(std::move(name)) {
  const auto ordered = in_file_order(pieces);
  header_ = safetensors_header(items_of(ordered),
                               {{"format", "bloomery-checkpoint"}, {"step", std::to_string(step)}});
  segments_.push_back({0, header_.size(), reinterpret_cast<const std::byte*>(header_.data())});
  size_ = header_.size();
  for (const SnapshotPiece* piece : ordered) {
    segments_.push_back({size_, piece->bytes(), static_cast<const std::byte*>(piece->data), piece});
    size_ += piece->bytes();
  }
}

void PieceFile::assemble(std::uint64_t offset, std::span<std::byte> to) const {
  auto segment = std::ranges::upper_bound(segments_, offset, {}, &Segment::begin) - 1;
  while (!to.empty()) {
    const std::uint64_t within = offset - segment->begin;
    const std::size_t count = std::min<std::uint64_t>(to.size(), segment->size - within);
    if (count > 0 && segment->data != nullptr) {
      std::memcpy(to.data(), segment->data + within, count);
    } else if (count > 0) {
      segment->piece->read(within, to.first(count));
    }
    to = to.subspan(count);
    offset += count;
    ++segment;
  }
}

ManifestPart PieceFile::part() const {
  ManifestPart part{.file = {.name = name_, .size = size_, .hashes = {}}, .tensors = {}};
  for (const Segment& segment : segments_) {
    if (segment.piece == nullptr) {
      continue;
    }
    const SnapshotPiece& piece = *segment.piece;
    ManifestTensor& tensor = part.tensors[piece.tensor];
    if (tensor.pieces.empty()) {
      tensor.dtype = piece.dtype;
      tensor.shape = piece.box.global;
    }
    check(tensor.dtype == piece.dtype && tensor.shape == piece.box.global, "pieces of ",
          piece.tensor, " disagree: ", tensor.dtype, " ", tensor.shape, " and ", piece.dtype, " ",
          piece.box.global);
    tensor.pieces.push_back({.file = 0, .offset = segment.begin, .box = piece.box});
  }
  return part;
}

ManifestPart PieceFile::write(const std::filesystem::path& folder,
                              const PieceFileOptions& options) const {
  ManifestPart written = part();
  const std::uint64_t block = options.block_bytes;
  const auto blocks = static_cast<std::int64_t>((size_ + block - 1) / block);
  written.file.hashes.resize(static_cast<std::size_t>(blocks));
  BlockOutput output(folder / name_, size_, options.direct);
  const auto threads =
      std::clamp<std::int64_t>(options.num_threads, 1, std::max<std::int64_t>(blocks, 1));
  ThreadPool pool(static_cast<int>(threads));
  std::atomic<std::int64_t> next = 0;
  pool.for_each(threads, [&](std::int64_t) {
    const AlignedBuffer buffer = make_aligned_buffer(block);
    std::memset(buffer.get(), 0, block);  // what goes on behind the last byte is no one's memory
    for (std::int64_t i = next++; i < blocks; i = next++) {
      const std::uint64_t offset = static_cast<std::uint64_t>(i) * block;
      const std::size_t size = std::min(block, size_ - offset);
      const std::span<std::byte> bytes(buffer.get(), size);
      assemble(offset, bytes);
      written.file.hashes[static_cast<std::size_t>(i)] = xxh3(bytes);
      output.write(offset, {buffer.get(), block}, size);
    }
  });
  output.sync();
  return written;
}

}  // namespace bloomery
