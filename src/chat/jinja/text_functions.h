// What methods and filters of texts share.
#pragma once

#include <vector>

#include "chat/jinja/heap.h"

namespace bloomery::jinja {

Text upper(const Text& text);
Text lower(const Text& text);
Text capitalize(const Text& text);
Text title(const Text& text);
// Without white space at the ends, or without these characters.
Text strip(const Text& text, const Value& characters, bool left = true, bool right = true);
Text replace(Heap& heap, const Text& text, const Text& old, const Text& by, std::int64_t most);
// As HTML would spell it; what is markup already stays.
Text escape(Heap& heap, const Text& text);
std::vector<Text> split_lines(const Text& text, bool keep_ends = false);
// By white space where the separator is none; at most `most` cuts where that is not negative.
std::vector<Text> split(const Text& text, const Value& separator, std::int64_t most,
                        bool from_right);
Text join(Heap& heap, const Text& between, const std::vector<Value>& items);
Value text_list(Heap& heap, std::vector<Text> texts, ListForm form = ListForm::list);

}  // namespace bloomery::jinja
