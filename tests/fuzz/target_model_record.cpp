// The record of a checkpoint's model and tokenizer: what is accepted must be written and read again
// without a change.
#include <cstdlib>

#include "checkpoint/model_record.h"
#include "fuzz.h"

namespace bloomery {
namespace {

template <class Read>
void read_twice(std::string_view json, Read&& read) {
  std::string written;
  try {
    written = to_json(read(json, "record"));
  } catch (const Error&) {
    return;
  }
  if (to_json(read(written, "written record")) != written) {
    std::abort();
  }
}

}  // namespace

void fuzz_input(std::span<const std::byte> input) {
  read_twice(as_text(input), gpt_options_from_json);
  read_twice(as_text(input), tokenizer_options_from_json);
}

}  // namespace bloomery
