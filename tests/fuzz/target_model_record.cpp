// The record of a checkpoint's model and tokenizer: what is accepted must be written and read again
// without a change.
#include <cstdlib>

#include "checkpoint/model_record.h"
#include "fuzz.h"

namespace bloomery {
namespace {

template <class Rewrite>
void rewrite_twice(const std::string& json, Rewrite&& rewrite) {
  std::string written;
  try {
    written = rewrite(json);
  } catch (const Error&) {
    return;
  }
  if (rewrite(written) != written) {
    std::abort();
  }
}

}  // namespace

void fuzz_input(std::span<const std::byte> input) {
  const std::string text(as_text(input));
  rewrite_twice(text, [](const std::string& json) {
    std::vector<std::string> notes;
    return to_record(from_record(json, "record", notes));
  });
  rewrite_twice(text, [](const std::string& json) {
    return to_json(tokenizer_options_from_json(json, "record"));
  });
}

}  // namespace bloomery
