// The lines of a chunk to tokens, faults noted and skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/input/json_line.h"
#include "data/input/line_format.h"
#include "data/input/line_reader.h"
#include "data/preprocess/document_encoder.h"

namespace bloomery {

struct BadLine {
  std::size_t file;
  std::uint64_t offset;  // of the start of the line, in the decompressed file
  std::string fault;
};

inline constexpr std::size_t kBadLinesReported = 10;

struct EncodedChunk {
  std::vector<EncodedBatch> batches;  // of each key
  std::int64_t lines = 0;             // neither blank nor bad
  std::int64_t empty_texts = 0;       // that gave no document
  std::int64_t bad_lines = 0;
  std::vector<BadLine> first_bad_lines;
  std::uint64_t bytes = 0;           // of text read, newlines included
  std::uint64_t input_position = 0;  // as in LineChunk

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

  // `format` is not `automatic`. A text that the tokenizer does not take is an Error.
  void encode(const LineChunk& chunk, LineFormat format, EncodedChunk& out);

 private:
  void encode_line(std::string_view line, LineFormat format, EncodedChunk& out);
  void encode_text(std::size_t key, std::string_view text, EncodedChunk& out);

  const ChunkEncoderOptions options_;
  JsonLineParser parser_;
  DocumentEncoder documents_;
  std::string fault_;  // of the line at hand; empty: none
};

}  // namespace bloomery
