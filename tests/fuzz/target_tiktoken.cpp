// A tiktoken rank file.
#include "fuzz.h"
#include "tokenizer/bpe/tiktoken.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const MemoryFile ranks(as_text(input));
  use_tokenizer(*load_tiktoken(ranks.path(), "cl100k"));
}

}  // namespace bloomery
