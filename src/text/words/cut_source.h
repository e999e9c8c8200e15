// The beginning of the input, in pieces.
#pragma once

#include <cstdint>

#include "text/input/line_reader.h"

namespace bloomery {

struct CutLimits {
  std::uint64_t bytes = 0, documents = 0;  // 0: none
};

class CutSource : public ChunkSource {
 public:
  CutSource(ChunkSource& from, const CutLimits& limits) : from_(from), limits_(limits) {}

  // Lets chunks pass until so many bytes have; then next() says false until the next allowance.
  void allow(std::uint64_t bytes) { allowance_ = bytes; }
  bool ended() const { return ended_; }  // all of the beginning was given out

  // Where chunks and pieces end depends on the input alone.
  bool next(LineChunk& chunk) override;

 private:
  void cut(LineChunk& chunk);

  ChunkSource& from_;
  const CutLimits limits_;
  std::uint64_t bytes_ = 0, documents_ = 0, allowance_ = 0;
  bool ended_ = false;
};

}  // namespace bloomery
