// Sorts more records than memory holds: sorted runs on disk, which are merged. Every run is an open
// file, so as many as are merged at once become one before there are more of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <queue>
#include <span>
#include <type_traits>
#include <vector>

#include "base/buffered_bytes.h"

namespace bloomery {

// Record: trivially copyable, ordered by <. Equal ones come out in any order.
template <class Record>
class ExternalSorter {
  static_assert(std::is_trivially_copyable_v<Record>);
  static constexpr std::size_t kMergedAtOnce = 64;

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
      merge(runs_, visit);
    }
    runs_.clear();
    records_ = std::vector<Record>();
  }

  std::size_t num_runs() const { return runs_.size(); }  // on disk now

 private:
  struct Run {
    std::unique_ptr<SpillFile> file;
    std::uint64_t count = 0;  // of records
    int merges = 0;           // that made it, one of the results of the other
    std::uint64_t next = 0;   // to load
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
    while (merge_last()) {
    }
  }

  // Makes one of the last runs, if so many are made by as many merges; so a record is merged as
  // often as the logarithm of their number says. False: there was nothing to do.
  bool merge_last() {
    if (runs_.size() < kMergedAtOnce) return false;
    const std::span<Run> last = std::span(runs_).last(kMergedAtOnce);
    if (last.front().merges != last.back().merges) return false;
    records_ = std::vector<Record>();  // the merge needs the memory
    Run merged{std::make_unique<SpillFile>(folder_ / "run")};
    merged.merges = last.back().merges + 1;
    merge(last, [&](const Record& record) {
      merged.file->write(std::as_bytes(std::span(&record, 1)));
      ++merged.count;
    });
    merged.file->flush();
    runs_.resize(runs_.size() - kMergedAtOnce);
    runs_.push_back(std::move(merged));
    return true;
  }

  template <class Visit>
  void merge(std::span<Run> runs, const Visit& visit) {
    const std::size_t each = std::max<std::size_t>(64, capacity_ / runs.size());
    const auto later = [](const Run* a, const Run* b) {
      return b->loaded[b->at] < a->loaded[a->at];
    };
    std::priority_queue<Run*, std::vector<Run*>, decltype(later)> heads(later);
    for (Run& run : runs) {
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
