#include "data/preprocess/chunk_encoder.h"

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::size_t kLargestKept = 8 << 20;  // so that a long document holds no memory for ever

void note(EncodedChunk& out, const LineChunk& chunk, std::uint64_t offset, std::string fault) {
  if (out.bad_lines++ < static_cast<std::int64_t>(kBadLinesReported)) {
    out.first_bad_lines.push_back({chunk.file, offset, std::move(fault)});
  }
}

std::string too_long(std::uint64_t bytes, std::size_t limit) {
  return concat("a line of ", bytes, " bytes; --max-document-bytes is ", limit);
}

}  // namespace

void EncodedChunk::clear() {
  for (EncodedBatch& batch : batches) {
    if (batch.tokens.capacity() > kLargestKept) {
      batch.tokens = {};
    }
    batch.tokens.clear();
    batch.lengths.clear();
    batch.document_sequences.clear();
  }
  lines = empty_texts = bad_lines = 0;
  first_bad_lines.clear();
}

ChunkEncoder::ChunkEncoder(const Tokenizer& tokenizer, const ChunkEncoderOptions& options,
                           TokenType type)
    : options_(options), parser_(options.keys), documents_(tokenizer, options.document, type) {}

void ChunkEncoder::encode_text(std::size_t key, std::string_view text, EncodedChunk& out) {
  if (text.empty() || !documents_.encode(text, out.batches[key])) {
    ++out.empty_texts;
  }
}

void ChunkEncoder::encode_line(std::string_view line, LineFormat format, EncodedChunk& out) {
  fault_.clear();
  if (line.size() > options_.max_line_bytes) {
    fault_ = too_long(line.size(), options_.max_line_bytes);
  } else if (format == LineFormat::text) {
    const std::size_t valid = valid_utf8_prefix(line);
    if (valid == line.size()) {
      encode_text(0, line, out);
    } else {
      fault_ = concat("invalid UTF-8 (byte ", valid, " of the line)");
    }
  } else if (parser_.parse(line)) {
    for (std::size_t key = 0; key < options_.keys.size(); ++key) {
      encode_text(key, parser_.text(key), out);
    }
  } else {
    fault_ = parser_.fault();
  }
}

void ChunkEncoder::encode(const LineChunk& chunk, LineFormat format, EncodedChunk& out) {
  out.batches.resize(options_.keys.size());
  out.clear();
  out.input_position = chunk.input_position;
  if (chunk.overlong_bytes > 0) {
    out.bytes = chunk.overlong_bytes;
    note(out, chunk, chunk.offset, too_long(chunk.overlong_bytes, options_.max_line_bytes));
    return;
  }
  const std::string_view text = chunk.bytes();
  out.bytes = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::string_view line = next_line(text, at);
    if (is_blank(line)) {
      continue;
    }
    try {
      encode_line(line, format, out);
    } catch (const Error& error) {
      throw Error(concat("line at byte ", chunk.offset + begin, ": ", error.what()));
    }
    if (fault_.empty()) {
      ++out.lines;
    } else {
      note(out, chunk, chunk.offset + begin, fault_);
    }
  }
  if (text.size() > kLargestKept) {
    parser_ = JsonLineParser(options_.keys);
  }
}

}  // namespace bloomery
