// Lines of JSON. A good line gives texts of valid UTF-8, no longer than the line; a bad one a
// reason.
#include <algorithm>
#include <cstdlib>

#include "data/input/json_line.h"
#include "fuzz.h"
#include "tokenizer/utf8.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  JsonLineParser parser({"text", "title"});
  std::string_view rest = as_text(input);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (parser.parse(line)) {
      for (const std::size_t key : {0, 1}) {
        const std::string_view text = parser.text(key);
        if (text.size() > line.size() || !is_utf8(text)) {
          std::abort();
        }
      }
    } else if (parser.fault().empty()) {
      std::abort();
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace bloomery
