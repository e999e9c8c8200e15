// Sorts more records than memory holds: sorted runs on disk, then one merge of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <queue>
#include <span>
#include <type_traits>
#include <vector>

#include "data/writer_files.h"

namespace bloomery {

// Record: trivially copyable, ordered by <. Equal ones come out in any order.
template <class Record>
class ExternalSorter {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  // So much memory is used at most: two thirds for records, as the vector of them grows by copying.
  ExternalSorter(std::filesystem::path folder, std::size_t memory_bytes)
      : folder_(std::move(folder)),
        capacity_(std::max<std::size_t>(64, memory_bytes / 3 * 2 / sizeof(Record))) {}

  void add(const Record& record) {
    if (records_.size() == capacity_) spill();
    records_.push_back(record);
  }

  // All records in ascending order; then there are none.
  template <class Visit>
  void for_each_sorted(const Visit& visit) {
    if (runs_.empty()) {
      std::ranges::sort(records_);
      std::ranges::for_each(records_, visit);
    } else {
      if (!records_.empty()) spill();
      records_ = std::vector<Record>();
      merge(visit);
    }
    runs_.clear();
    records_ = std::vector<Record>();
  }

  std::size_t num_runs() const { return runs_.size(); }

 private:
  struct Run {
    std::unique_ptr<SpillFile> file;
    std::uint64_t count = 0, next = 0;  // records; next to load
    std::vector<Record> loaded;
    std::size_t at = 0;  // in loaded

    bool load(std::size_t records) {
      loaded.resize(std::min<std::uint64_t>(records, count - next));
      at = 0;
      if (!loaded.empty()) {
        file->read(next * sizeof(Record), std::as_writable_bytes(std::span(loaded)));
      }
      next += loaded.size();
      return !loaded.empty();
    }
  };

  void spill() {
    std::ranges::sort(records_);
    runs_.push_back({std::make_unique<SpillFile>(folder_ / "run"), records_.size()});
    runs_.back().file->write(std::as_bytes(std::span(records_)));
    runs_.back().file->flush();
    records_.clear();
  }

  template <class Visit>
  void merge(const Visit& visit) {
    const std::size_t each = std::max<std::size_t>(64, capacity_ / runs_.size());
    const auto later = [](const Run* a, const Run* b) {
      return b->loaded[b->at] < a->loaded[a->at];
    };
    std::priority_queue<Run*, std::vector<Run*>, decltype(later)> heads(later);
    for (Run& run : runs_) {
      if (run.load(each)) heads.push(&run);
    }
    while (!heads.empty()) {
      Run* run = heads.top();
      heads.pop();
      visit(run->loaded[run->at]);
      if (++run->at < run->loaded.size() || run->load(each)) heads.push(run);
    }
  }

  const std::filesystem::path folder_;
  const std::size_t capacity_;
  std::vector<Record> records_;
  std::vector<Run> runs_;
};

}  // namespace bloomery
