// Rules about the quality of texts: those of Gopher, C4 and FineWeb with their thresholds, as
// datatrove states them, and with the words that it counts (words.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bloomery {

// Why the text is to be dropped; empty: it passes.
std::string gopher_quality(std::string_view text);
std::string gopher_repetition(std::string_view text);
std::string fineweb_quality(std::string_view text);

struct C4Rules {
  bool line_needs_end = true;  // lines must end in . ? ! " '; FineWeb leaves this out
  std::int64_t least_sentences = 5;
};

// Drops lines: `text` becomes those that stay, `dropped` counts the others by reason.
std::string c4_quality(std::string& text, const C4Rules& rules,
                       std::map<std::string, std::int64_t>& dropped);

}  // namespace bloomery
