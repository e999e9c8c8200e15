// Broken text made whole, in the cases that are common, as ftfy does with its defaults: UTF-8 that
// was read as Windows-1252 or Latin-1 (once or several times over), HTML's entities unless the text
// has a <, terminal escapes, control characters and byte order marks; ligatures, full-width letters
// and curly quotes become plain; line ends become \n; then NFC.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// True when the text was changed. The text must be UTF-8.
bool repair_text(std::string& text);

// Its parts. Entities are decoded whatever the text has besides.
bool repair_mojibake(std::string& text);
bool decode_entities(std::string& text);

}  // namespace bloomery
