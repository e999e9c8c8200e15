// Broken text made whole as ftfy does with its defaults: UTF-8 that was read in another encoding
// (once or several times over), HTML's entities, terminal escapes, control characters and byte
// order marks; ligatures, full-width letters and curly quotes become plain; line ends become \n;
// then NFC. Every line is repaired for itself. From the first line with a < on entities stay.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// True when the text was changed. The text must be UTF-8.
bool repair_text(std::string& text);

// Entities of HTML 5, and numbers as browsers take them, whatever the text has besides.
bool decode_entities(std::string& text);

}  // namespace bloomery
