// The lines of a chunk to tokens, faults noted and skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corpus/preprocess/document_encoder.h"
#include "text/input/document_lines.h"

namespace bloomery {

struct EncodedChunk : LineCounts {
  std::vector<EncodedBatch> batches;  // of each key
  std::int64_t empty_texts = 0;       // that gave no document

  void clear();
};

struct ChunkEncoderOptions {
  std::vector<std::string> keys = {"text"};
  DocumentOptions document;
  std::size_t max_line_bytes = 32 << 20;
};

// Of one thread; refers to the tokenizer.
class ChunkEncoder {
 public:
  ChunkEncoder(const Tokenizer& tokenizer, const ChunkEncoderOptions& options, TokenType type);

  // A text that the tokenizer does not take is an Error.
  void encode(const LineChunk& chunk, EncodedChunk& out);

 private:
  const std::size_t num_keys_;
  DocumentLines lines_;
  DocumentEncoder documents_;
};

}  // namespace bloomery
