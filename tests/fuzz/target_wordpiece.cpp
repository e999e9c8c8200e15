// BERT's vocab.txt.
#include "fuzz.h"
#include "tokenizer/wordpiece/wordpiece.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  use_tokenizer(*parse_wordpiece(std::string(as_text(input)), "fuzz.txt"));
}

}  // namespace bloomery
