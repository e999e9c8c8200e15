// Pages of a Wikipedia dump, and the markup of an article: whatever is never closed, what is left
// is text, and no longer than what was there.
#include <cstdlib>

#include "fuzz.h"
#include "text/wiki/wiki_dump.h"
#include "text/wiki/wiki_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  base_url(text);
  for (const WikiPage& page : articles(text)) {
    plain_wiki_text(page.markup);
  }
  if (!is_utf8(text)) {
    return;
  }
  if (without_nested(text, "{{", "}}").size() > text.size() ||
      replace_links(text).size() > text.size()) {
    std::abort();
  }
  plain_wiki_text(text);
}

}  // namespace bloomery
