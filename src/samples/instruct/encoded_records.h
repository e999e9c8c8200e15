// Instruction data as tokens, in files that all ranks of a machine read: examples one after
// another, as ids and as what is learnt of them. Nothing of the files is held in memory.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/buffered_bytes.h"
#include "base/hash.h"
#include "samples/instruct/example_maker.h"

namespace bloomery {

// What is added to the stem of their names.
inline constexpr std::array kEncodedSuffixes = {".ids", ".loss_mask", ".ends", ".json"};

// Good records of which it cannot be said what their answers are.
struct LeftOutRecords {
  static constexpr std::size_t kNamed = 3;
  struct Place {
    std::size_t file = 0;  // among the files that were read
    std::string name;      // "line 3"
  };

  std::int64_t count = 0;
  std::vector<Place> first;  // kNamed at most
  std::string reason;        // of the first
};

class EncodedRecords {
 public:
  // An Error says why the files cannot be used: one is cut off, or its hash is another.
  explicit EncodedRecords(const std::filesystem::path& stem);

  std::int64_t size() const { return size_; }  // examples; of pairs two for each record
  const LeftOutRecords& left_out() const { return left_out_; }

  // The example, cut to `most` tokens. Of any thread.
  void read(std::int64_t number, std::int64_t most, InstructExample& example) const;

  using Body = std::function<void(std::int64_t number, std::span<const TokenId> ids,
                                  std::span<const std::uint8_t> loss_mask)>;
  // Whole examples in order, in large pieces.
  void for_each(std::int64_t first, std::int64_t last, const Body& body) const;

 private:
  // Where the examples [first, last) begin in tokens, and where the last of them ends.
  std::vector<std::int64_t> borders(std::int64_t first, std::int64_t last) const;

  InputFile ids_, loss_mask_, ends_;
  std::int64_t size_ = 0;
  LeftOutRecords left_out_;
};

// Writes such files, which appear when they are whole.
class EncodedRecordsWriter {
 public:
  explicit EncodedRecordsWriter(const std::filesystem::path& stem);

  void add(const InstructExample& example);
  void commit(const LeftOutRecords& left_out);

 private:
  struct Output {
    explicit Output(const std::filesystem::path& path) : file(path) {}
    void write(std::span<const std::byte> bytes);
    BufferedFile file;
    RunningXxh3 hash;
  };

  std::filesystem::path stem_;
  Output ids_, loss_mask_, ends_;
  std::int64_t size_ = 0, tokens_ = 0;
};

}  // namespace bloomery
