#include "corpus/preprocess/chunk_encoder.h"

#include "base/error.h"

namespace bloomery {

void EncodedChunk::clear() {
  constexpr std::size_t kLargestKept = 8 << 20;  // so that a long document holds no memory for ever
  for (EncodedBatch& batch : batches) {
    if (batch.tokens.capacity() > kLargestKept) {
      batch.tokens = decltype(batch.tokens)();  // {} would keep the memory
    }
    batch.tokens.clear();
    batch.lengths.clear();
    batch.document_sequences.clear();
  }
  empty_texts = 0;
  static_cast<LineCounts&>(*this) = {};
}

ChunkEncoder::ChunkEncoder(const Tokenizer& tokenizer, const ChunkEncoderOptions& options,
                           TokenType type)
    : num_keys_(options.keys.size()),
      lines_(options.keys, options.max_line_bytes),
      documents_(tokenizer, options.document, type) {}

void ChunkEncoder::encode(const LineChunk& chunk, EncodedChunk& out) {
  out.batches.resize(num_keys_);
  out.clear();
  lines_.for_each(chunk, [&](const DocumentLine& line) {
    out.add(chunk, line);
    for (std::size_t key = 0; key < line.texts.size(); ++key) {
      try {
        const std::string_view text = line.texts[key];
        if (text.empty() || !documents_.encode(text, out.batches[key])) ++out.empty_texts;
      } catch (const Error& error) {
        throw Error(concat(line_place(line.offset, line.is_row), ": ", error.what()));
      }
    }
  });
}

}  // namespace bloomery
