// A document, repaired and judged: what was UTF-8 stays UTF-8.
#include <cstdlib>

#include "fuzz.h"
#include "text/filter/quality.h"
#include "text/filter/repair.h"
#include "text/filter/url_rules.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

void fuzz_input(std::span<const std::byte> input) {
  std::string text(as_text(input));
  openwebtext_fault(text);
  registered_name(text);
  if (!is_utf8(text)) {
    return;
  }
  repair_text(text);
  require(is_utf8(text));
  gopher_quality(text);
  gopher_repetition(text);
  fineweb_quality(text);
  std::map<std::string, std::int64_t> dropped;
  c4_quality(text, {}, dropped);
  require(is_utf8(text));
}

}  // namespace bloomery
