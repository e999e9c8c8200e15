// vocab.json and merges.txt, with a zero byte between them.
#include <algorithm>

#include "fuzz.h"
#include "tokenizer/bpe/gpt2.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  const std::size_t border = std::min(text.find('\0'), text.size());
  const MemoryFile vocab(text.substr(0, border));
  const MemoryFile merges(text.substr(std::min(border + 1, text.size())));
  use_tokenizer(*load_gpt2(vocab.path(), merges.path()));
}

}  // namespace bloomery
