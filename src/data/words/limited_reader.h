// The beginning of the inputs, in chunks of lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "data/input/line_reader.h"

namespace bloomery {

struct ReaderLimits {
  std::uint64_t bytes = 0, documents = 0;  // 0: none
};

class LimitedReader {
 public:
  LimitedReader(std::vector<std::string> files, LineFormat format, std::size_t max_line_bytes,
                const ReaderLimits& limits, const std::atomic<bool>* stop)
      : limits_(limits),
        reader_(std::move(files), {.max_line_bytes = max_line_bytes, .format = format}, stop) {}

  // The next chunk of the input; false at the end. Where chunks end depends on the input alone.
  bool next(LineChunk& chunk);

 private:
  void cut(LineChunk& chunk);

  const ReaderLimits limits_;
  LineReader reader_;
  std::uint64_t bytes_ = 0, documents_ = 0;
  bool ended_ = false;
};

}  // namespace bloomery
