#include "corpus/preprocess/partitions.h"

#include <algorithm>
#include <system_error>

#include "text/parquet/parquet_file.h"

namespace bloomery {
namespace {

std::filesystem::path part_prefix(const StagedFolder& folder, std::size_t number) {
  return folder.path() / std::to_string(number);
}

// What is never divided: a file, or a row group.
struct Piece {
  PartitionStart start;
  double bytes = 0;
};

void add_row_groups(const std::string& path, std::size_t number, std::vector<Piece>& pieces) {
  const ParquetFile file(path);
  const double bytes_per_row = static_cast<double>(file.bytes().size()) /
                               std::max(1.0, static_cast<double>(file.num_rows()));
  std::uint64_t row = 0;
  for (const ParquetGroup& group : file.groups()) {
    if (group.num_rows == 0) continue;
    pieces.push_back({{number, row}, bytes_per_row * static_cast<double>(group.num_rows)});
    row += static_cast<std::uint64_t>(group.num_rows);
  }
  if (row == 0) pieces.push_back({{number, 0}, 1});
}

std::vector<Piece> pieces_of(const std::vector<std::string>& files) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (is_parquet(files[i])) {
      add_row_groups(files[i], i, pieces);
      continue;
    }
    std::error_code error;  // a pipe counts as small
    const std::uintmax_t size = std::filesystem::file_size(files[i], error);
    pieces.push_back({{i, 0}, error ? 1 : static_cast<double>(size) + 1});
  }
  return pieces;
}

}  // namespace

std::vector<PartitionStart> partition_starts(const std::vector<std::string>& files,
                                             int partitions) {
  if (partitions == 1) return {{}};
  const std::vector<Piece> pieces = pieces_of(files);
  double total = 0;
  for (const Piece& piece : pieces) total += piece.bytes;
  const std::size_t wanted = std::min(pieces.size(), static_cast<std::size_t>(partitions));
  std::vector<PartitionStart> starts = {{}};
  double before = 0;
  for (std::size_t i = 1; i < pieces.size() && starts.size() < wanted; ++i) {
    before += pieces[i - 1].bytes;
    const double share = total * static_cast<double>(starts.size()) / static_cast<double>(wanted);
    const bool must = pieces.size() - i == wanted - starts.size();  // else one would be empty
    if (must || before + pieces[i].bytes / 2 > share) starts.push_back(pieces[i].start);
  }
  return starts;
}

PartitionedWriter::PartitionedWriter(const std::string& prefix, TokenType type, CorpusFormat format,
                                     std::size_t partitions) {
  writers_.push_back(std::make_unique<IndexedWriter>(prefix, type, format));
  if (partitions > 1) folder_.emplace(prefix + "_partitions");
  for (std::size_t number = 1; number < partitions; ++number) {
    writers_.push_back(std::make_unique<IndexedWriter>(part_prefix(*folder_, number), type));
  }
}

bool PartitionedWriter::empty() const {
  return std::ranges::all_of(writers_, [](const auto& w) { return w->num_documents() == 0; });
}

IndexedWriter& PartitionedWriter::joined() {
  for (std::size_t number = 1; number < writers_.size(); ++number) {
    std::unique_ptr<IndexedWriter>& part = writers_[number];
    const std::filesystem::path prefix = part_prefix(*folder_, number);
    if (part->num_documents() > 0) {
      part->commit();
      writers_[0]->append(IndexedCorpus(prefix));
    }
    part = nullptr;
    for (const char* ending : {".bin", ".idx"}) {
      std::filesystem::remove(std::filesystem::path(prefix).concat(ending));
    }
  }
  writers_.resize(1);
  folder_.reset();
  return *writers_[0];
}

}  // namespace bloomery
