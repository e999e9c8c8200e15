// One column of a row group, page by page: levels and values from front to back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/parquet/codec.h"
#include "text/parquet/integers.h"
#include "text/parquet/metadata.h"
#include "text/parquet/values.h"

namespace bloomery {

// Bytes that are taken only when they are written to, so that a size which lies costs nothing.
class PageBytes {
 public:
  std::span<char> take(std::size_t size);
  std::string_view text() const { return {bytes_.get(), used_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t room_ = 0, used_ = 0;
};

class ParquetColumn {
 public:
  // `leaf` and `file` must stay; `end` is where the data of the file end. Reads the first page.
  ParquetColumn(const ReadableBytes& file, std::uint64_t end, const ParquetChunk& chunk,
                const ParquetNode& leaf);

  // Of the next value; behind the last one both are 0.
  int repetition() const { return repetition_; }
  int definition() const { return definition_; }
  bool ended() const { return ended_; }
  // The next value, where its definition level says that it is there; once.
  const ParquetValue& value();
  void next();

  const ParquetNode& leaf() const { return leaf_; }

 private:
  void start_page();
  ParquetPage read_head();
  void read_body(const ParquetPage& page);
  std::string_view start_levels(const ParquetPage& page);
  void start_data(const ParquetPage& page);
  void start_dictionary(const ParquetPage& page);

  const ReadableBytes& file_;
  const ParquetNode& leaf_;
  const ParquetCodec codec_;
  std::uint64_t at_, end_;     // of the pages to come
  std::uint64_t left_;         // values of pages to come
  std::uint64_t in_page_ = 0;  // values of this page to come
  PageBytes packed_, page_, dictionary_bytes_;
  std::string head_;
  bool has_dictionary_ = false;
  std::vector<ParquetValue> dictionary_;
  Unpacker unpacker_;
  RleReader repetitions_, definitions_;
  std::unique_ptr<ParquetValues> values_;
  ParquetValue value_;
  int repetition_ = 0, definition_ = 0;
  bool ended_ = false;
};

}  // namespace bloomery
