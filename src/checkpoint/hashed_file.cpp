#include "checkpoint/hashed_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace bloomery {

HashedFile::HashedFile(std::unique_ptr<const ReadableBytes> bytes, const ManifestFile& file,
                       std::uint64_t block_bytes)
    : bytes_(std::move(bytes)),
      block_bytes_(block_bytes),
      hashes_(file.hashes),
      checked_(std::make_unique<std::atomic<bool>[]>(file.hashes.size())) {
  if (bytes_->size() != file.size) {
    throw DamagedFile(concat(bytes_->name(), ": damaged: it has ", bytes_->size(), " bytes, not ",
                             file.size, " as the manifest says"));
  }
}

std::uint64_t HashedFile::block_size(std::int64_t block) const {
  return std::min(block_bytes_, bytes_->size() - static_cast<std::uint64_t>(block) * block_bytes_);
}

void HashedFile::compare(std::int64_t block, std::span<const std::byte> bytes) const {
  const std::uint64_t expected = hashes_[static_cast<std::size_t>(block)];
  const std::uint64_t found = xxh3(bytes);
  if (found != expected) {
    const std::uint64_t first = static_cast<std::uint64_t>(block) * block_bytes_;
    throw DamagedFile(concat(bytes_->name(), ": damaged: block ", block, " of ", hashes_.size(),
                             " (bytes ", first, " to ", first + bytes.size(), ") has the hash ",
                             hash_text(found), ", not ", hash_text(expected)));
  }
  checked_[static_cast<std::size_t>(block)] = true;
}

void HashedFile::check_block(std::int64_t block, std::span<std::byte> buffer) const {
  const std::span<std::byte> bytes = buffer.first(block_size(block));
  bytes_->read(static_cast<std::uint64_t>(block) * block_bytes_, bytes.data(), bytes.size());
  compare(block, bytes);
}

void HashedFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  check(offset <= bytes_->size() && to.size() <= bytes_->size() - offset, bytes_->name(),
        ": bytes ", offset, " to ", offset + to.size(), " are not in the file");
  std::vector<std::byte> buffer;
  while (!to.empty()) {
    const auto block = static_cast<std::int64_t>(offset / block_bytes_);
    const std::uint64_t within = offset % block_bytes_, size = block_size(block);
    const std::span<std::byte> part = to.first(std::min<std::uint64_t>(to.size(), size - within));
    if (checked_[static_cast<std::size_t>(block)]) {
      bytes_->read(offset, part.data(), part.size());
    } else if (part.size() == size) {
      check_block(block, part);
    } else {
      buffer.resize(block_bytes_);
      check_block(block, buffer);
      std::memcpy(part.data(), buffer.data() + within, part.size());
    }
    offset += part.size();
    to = to.subspan(part.size());
  }
}

}  // namespace bloomery
