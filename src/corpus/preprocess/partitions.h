// The input in contiguous runs that are read at the same time, and corpora that come out in the
// order of the input all the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folder.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {

struct PartitionStart {
  std::size_t file = 0;   // position in the list of files
  std::uint64_t row = 0;  // of a Parquet file: where a row group begins

  bool operator==(const PartitionStart&) const = default;
};

// Where the runs begin: `partitions` of them at most, of about equal bytes on disk, none empty. A
// run begins with a file, or within one that is Parquet.
std::vector<PartitionStart> partition_starts(const std::vector<std::string>& files, int partitions);

// The writers of one corpus: the first run goes to its final place, each further one to a corpus in
// a temporary folder, which is appended when all are done.
class PartitionedWriter {
 public:
  PartitionedWriter(const std::string& prefix, TokenType type, CorpusFormat format,
                    std::size_t partitions);

  IndexedWriter& partition(std::size_t number) { return *writers_[number]; }
  bool empty() const;
  // Joins the parts; then the first writer has everything, and is to be committed.
  IndexedWriter& joined();

 private:
  std::optional<StagedFolder> folder_;  // never committed: gone when this object is
  std::vector<std::unique_ptr<IndexedWriter>> writers_;
};

}  // namespace bloomery
