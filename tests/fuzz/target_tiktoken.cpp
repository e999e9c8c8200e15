// A tiktoken rank file, with the input itself as text to encode.
#include <cstdlib>

#include "fuzz.h"
#include "tokenizer/bpe/tiktoken.h"
#include "tokenizer/utf8.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
  const auto tokenizer = parse_tiktoken(std::string(bytes), "ranks.tiktoken", "o200k");
  const std::string text = repair_utf8(bytes);
  std::vector<TokenId> ids;
  tokenizer->make_encoder()->encode(text, ids);
  if (tokenizer->decode(ids) != text) std::abort();  // every byte has a token
}

}  // namespace bloomery
