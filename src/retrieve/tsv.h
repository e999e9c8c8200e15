// Rows of fields between tabs, as Python's csv module reads them: a field that begins with a
// quotation mark ends with one, and may hold tabs, line ends and doubled marks.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bloomery {

class ByteSource;

class TsvReader {
 public:
  // Decompresses by content.
  explicit TsvReader(const std::string& path);
  ~TsvReader();

  // False at the end. Empty lines are no rows. An Error names a row that is no valid UTF-8.
  bool next(std::vector<std::string>& fields);
  // Of the last row, from 1 on, and with the file's name for messages.
  std::string place() const;

 private:
  int take();  // the next byte, or -1
  int look();
  void read_quoted(std::string& field);

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::int64_t row_ = 0;
};

}  // namespace bloomery
