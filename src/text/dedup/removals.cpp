#include "text/dedup/removals.h"

#include <algorithm>

namespace bloomery {

namespace {
constexpr std::size_t kBlock = 1024;  // records read or written at once
}

void RemovalWriter::add(const Removal& removal) {
  pending_.push_back(removal);
  if (pending_.size() < kBlock) return;
  file_.write(pending_.data(), pending_.size() * sizeof(Removal));
  pending_.clear();
}

void RemovalWriter::commit() {
  file_.write(pending_.data(), pending_.size() * sizeof(Removal));
  file_.commit();
}

RemovalReader::RemovalReader(const std::filesystem::path& path)
    : file_(path), count_(file_.size() / sizeof(Removal)) {}

Removal RemovalReader::at(std::uint64_t index) {
  if (index < loaded_from_ || index >= loaded_from_ + loaded_.size()) {
    loaded_.resize(std::min<std::uint64_t>(kBlock, count_ - index));
    file_.read(index * sizeof(Removal), loaded_.data(), loaded_.size() * sizeof(Removal));
    loaded_from_ = index;
  }
  return loaded_[index - loaded_from_];
}

void RemovalReader::seek(std::uint64_t document) {
  std::uint64_t first = 0, last = count_;
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    if (at(middle).document < document) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  next_ = first;
}

const std::vector<Removal>& RemovalReader::of(std::uint64_t document) {
  found_.clear();
  for (; next_ < count_ && at(next_).document <= document; ++next_) {
    if (at(next_).document == document) found_.push_back(at(next_));
  }
  return found_;
}

}  // namespace bloomery
