// The body of a request to the server, in each of its forms.
#include "fuzz.h"
#include "serve/megatron_request.h"
#include "serve/text_request.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  for (const bool chat : {false, true}) {
    try {
      parse_text_request(as_text(input), chat);
    } catch (const Error&) {
      continue;  // the other form may take it
    }
  }
  parse_megatron_request(as_text(input));
}

}  // namespace bloomery
