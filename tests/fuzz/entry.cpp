// What libFuzzer calls, and helpers of the targets.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    bloomery::fuzz_input(std::as_bytes(std::span(data, size)));
  } catch (const bloomery::Error&) {
    return 0;  // refused with a message, as it should be
  }
  return 0;
}

namespace bloomery {

MemoryFile::MemoryFile(std::string_view contents) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  const auto size = static_cast<ssize_t>(contents.size());
  if (descriptor_ < 0 || write(descriptor_, contents.data(), contents.size()) != size) {
    std::abort();
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::filesystem::path MemoryFile::path() const { return concat("/proc/self/fd/", descriptor_); }

void use_tokenizer(const Tokenizer& tokenizer) {
  constexpr std::string_view kTexts[] = {
      "", "a", "ab abc  aab\n\n",
      "The 12 d\u00e9j\u00e0 vu's \u4f60\u597d \U0001F600 <s></s> \u2581x",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  for (const bool special : {false, true}) {
    const auto encoder =
        tokenizer.make_encoder({.add_special_tokens = special, .parse_special = special});
    for (const std::string_view text : kTexts) {
      std::vector<TokenId> ids;
      encoder->encode(text, ids);
      tokenizer.decode(ids);
    }
  }
}

}  // namespace bloomery
