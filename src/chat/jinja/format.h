// Python's two ways to fill values into a text: "%s" % x and "{}".format(x).
#pragma once

#include "chat/jinja/heap.h"

namespace bloomery::jinja {

Text percent_format(Heap& heap, const Text& pattern, const std::vector<Value>& values);
Text brace_format(Heap& heap, const Text& pattern, const Arguments& arguments);

}  // namespace bloomery::jinja
