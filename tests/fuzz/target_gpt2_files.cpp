// vocab.json and merges.txt with a zero byte between them, and the input itself as text to encode.
#include <cstdlib>

#include "fuzz.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/utf8.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
  const std::size_t border = std::min(bytes.find('\0'), bytes.size());
  const std::string vocabulary(bytes.substr(0, border));
  const std::string merges(bytes.substr(std::min(border + 1, bytes.size())));
  const auto tokenizer = parse_gpt2(vocabulary, "vocab.json", merges, "merges.txt");
  std::vector<TokenId> ids;
  tokenizer->make_encoder()->encode(repair_utf8(bytes), ids);
  for (const TokenId id : ids) {
    if (id < 0 || id >= tokenizer->vocab_size()) std::abort();
  }
}

}  // namespace bloomery
