#include "tokenizer/bpe/byte_bpe.h"

#include <algorithm>

namespace bloomery {

ByteBpe::ByteBpe(Vocabulary tokens, TextJoins joins, const ByteBpeOptions& options)
    : tokens_(std::move(tokens)), joins_(std::move(joins)), options_(options) {
  for (std::size_t byte = 0; byte < std::size(id_of_byte_); ++byte) {
    const char letter = static_cast<char>(byte);
    id_of_byte_[byte] = tokens_.find({&letter, 1}).value_or(options_.unknown.value_or(-1));
  }
  drops_bytes_ = std::ranges::find(id_of_byte_, -1) != std::end(id_of_byte_);
}

const ByteBpe::BytePairs& ByteBpe::neighbours() const {
  std::call_once(neighbours_found_, [&] {
    // Bytes that are not neighbours in the text may become so where others are left out.
    if (drops_bytes_) neighbours_.set();
    for (TokenId id = 0; id < tokens_.end_id(); ++id) {
      const std::string_view bytes = tokens_.piece(id).value_or("");
      for (std::size_t i = 1; i < bytes.size(); ++i) {
        neighbours_.set(pair_of(bytes[i - 1], bytes[i]));
      }
    }
  });
  return neighbours_;
}

}  // namespace bloomery
