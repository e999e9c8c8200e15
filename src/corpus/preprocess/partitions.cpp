#include "corpus/preprocess/partitions.h"

#include <algorithm>
#include <system_error>

namespace bloomery {
namespace {

std::filesystem::path part_prefix(const StagedFolder& folder, std::size_t number) {
  return folder.path() / std::to_string(number);
}

}  // namespace

std::vector<std::size_t> partition_starts(const std::vector<std::string>& files, int partitions) {
  std::vector<double> bytes;
  double total = 0;
  for (const std::string& file : files) {
    std::error_code error;  // a pipe counts as small
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    bytes.push_back(error ? 1 : static_cast<double>(size) + 1);
    total += bytes.back();
  }
  const std::size_t wanted = std::min(files.size(), static_cast<std::size_t>(partitions));
  std::vector<std::size_t> starts = {0};
  double before = 0;
  for (std::size_t file = 1; file < files.size() && starts.size() < wanted; ++file) {
    before += bytes[file - 1];
    const double share = total * static_cast<double>(starts.size()) / static_cast<double>(wanted);
    const bool must = files.size() - file == wanted - starts.size();  // else one would be empty
    if (must || before + bytes[file] / 2 > share) starts.push_back(file);
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
