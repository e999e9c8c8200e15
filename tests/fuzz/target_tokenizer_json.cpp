// Hugging Face's tokenizer.json.
#include "fuzz.h"
#include "tokenizer/hf/hf_tokenizer.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  use_tokenizer(*read_hf_tokenizer(std::string(as_text(input)), "fuzz.json"));
}

}  // namespace bloomery
