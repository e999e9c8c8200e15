// The inner loops of reading JSON strings.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bloomery {

// The first position at or after `at` of a quote, a backslash or a control character, which are
// what ends a run of plain characters in a JSON string; text.size() without one.
std::size_t end_of_plain(std::string_view text, std::size_t at);

// How many lists and objects of a JSON text may lie in each other: a value takes stack for each
// level when it is copied, written or freed.
inline constexpr int kMaxJsonTreeDepth = 32;

// An Error for a text of more levels than that, said in time linear in the text; whether it is JSON
// at all is left to who parses it.
void check_json_depth(std::string_view json, int most = kMaxJsonTreeDepth);

// The escape at text[at], a backslash.
struct JsonEscape {
  char32_t code = 0;
  std::size_t length = 0;  // in the text; 0: not a valid escape
};

// Surrogate pairs count as one escape; half of a pair is not valid.
JsonEscape read_escape(std::string_view text, std::size_t at);

}  // namespace bloomery
