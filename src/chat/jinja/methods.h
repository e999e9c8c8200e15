// Methods of values. Null where there is none of the name.
#pragma once

#include "chat/jinja/objects.h"

namespace bloomery::jinja {

Object* find_text_method(Heap& heap, const Value& object, std::string_view name);
Object* find_list_method(Heap& heap, const Value& object, std::string_view name);
Object* find_dict_method(Heap& heap, const Value& object, std::string_view name);

}  // namespace bloomery::jinja
