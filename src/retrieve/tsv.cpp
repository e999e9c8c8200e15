#include "retrieve/tsv.h"

#include "base/error.h"
#include "text/input/byte_source.h"
#include "tokenizer/utf8.h"

namespace bloomery {

TsvReader::TsvReader(const std::string& path)
    : path_(path), source_(decompressed(std::make_unique<FileSource>(path))), buffer_(1 << 16) {}

TsvReader::~TsvReader() = default;

int TsvReader::look() {
  if (at_ == end_) {
    at_ = 0;
    end_ = source_->read(buffer_);
  }
  return at_ == end_ ? -1 : static_cast<unsigned char>(buffer_[at_]);
}

int TsvReader::take() {
  const int byte = look();
  at_ += byte >= 0 ? 1 : 0;
  return byte;
}

// What follows the opening mark, up to the closing one.
void TsvReader::read_quoted(std::string& field) {
  for (int byte = take(); byte >= 0; byte = take()) {
    if (byte != '"') {
      field.push_back(static_cast<char>(byte));
    } else if (look() == '"') {
      field.push_back(static_cast<char>(take()));
    } else {
      return;
    }
  }
}

bool TsvReader::next(std::vector<std::string>& fields) {
  fields.clear();
  while (look() == '\n' || look() == '\r') {
    take();
  }
  if (look() < 0) {
    return false;
  }
  ++row_;
  fields.emplace_back();
  bool at_start = true;
  for (int byte = take(); byte >= 0 && byte != '\n'; byte = take()) {
    if (byte == '\t') {
      fields.emplace_back();
      at_start = true;
      continue;
    }
    if (byte == '"' && at_start) {
      read_quoted(fields.back());
    } else if (byte != '\r' || look() != '\n') {
      fields.back().push_back(static_cast<char>(byte));
    }
    at_start = false;
  }
  for (const std::string& field : fields) {
    check(is_utf8(field), place(), " is no valid UTF-8");
  }
  return true;
}

std::string TsvReader::place() const { return concat(path_, ": row ", row_); }

}  // namespace bloomery
