// What the fuzz targets share. Each target_NAME.cpp of this folder becomes the program fuzz_NAME:
// it defines fuzz_input(), which gives arbitrary bytes to one parser. A parser must return or throw
// Error; anything else, a sanitizer's complaint included, ends the run. Seeds lie in seeds/NAME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input);

inline std::string_view as_text(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// A file that lives in memory, for parsers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_;
};

// Encodes and decodes texts that reach the corners of tokenizers: a vocabulary that was accepted
// must also work.
void use_tokenizer(const Tokenizer& tokenizer);

}  // namespace bloomery
