// A SentencePiece model, plain and with Megatron's tokens.
#include "fuzz.h"
#include "tokenizer/sentencepiece/sentencepiece.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  for (const SentencePieceKind kind : {SentencePieceKind::plain, SentencePieceKind::megatron}) {
    use_tokenizer(*parse_sentencepiece_tokenizer(as_text(input), "fuzz.model", kind, 2));
  }
}

}  // namespace bloomery
