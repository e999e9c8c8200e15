// The decompressors behind `decompressed`: each reads compressed bytes from a CompressedInput.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "text/input/byte_source.h"

namespace bloomery {

// A window on the compressed bytes of a file.
class CompressedInput {
 public:
  explicit CompressedInput(std::unique_ptr<FileSource> file);

  const std::string& name() const { return file_->name(); }
  // The bytes not consumed yet; empty only at the end of the file.
  std::string_view available();
  void consume(std::size_t count) { begin_ += count; }
  // At least `count` bytes, or all that the file still has; count is at most 64.
  std::string_view look_ahead(std::size_t count);

 private:
  static constexpr std::size_t kBytes = 1 << 17;
  std::unique_ptr<FileSource> file_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<CompressedInput> from);
std::unique_ptr<ByteSource> unxz(std::unique_ptr<CompressedInput> from);
std::unique_ptr<ByteSource> unzstd(std::unique_ptr<CompressedInput> from);

}  // namespace bloomery
