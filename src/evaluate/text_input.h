// What evaluation reads: whole texts, documents in JSON lines, tokenised corpora.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/loaded_model.h"

namespace bloomery {

// The whole file, decompressed if need be, as valid UTF-8; an Error names the byte that is not.
std::string read_text(const std::string& path);

// Calls body(text, line number) for the text under `key` of each JSON line; blank lines are passed
// over. An Error names the line that is no such object.
void for_each_json_text(const std::string& path, const std::string& key,
                        const std::function<void(std::string_view, std::int64_t)>& body);

// A file of JSON lines, by its name or first lines; else it is one text.
bool is_json_lines(const std::string& path);

// The prefix of a .bin/.idx pair that the path means, with or without an ending; empty when it
// means none.
std::string corpus_prefix(const std::string& path);

}  // namespace bloomery
