#include "tokenizer/hf/json_fields.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

Fields::Fields(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  check(object_.is_object(), where_, " is not a JSON object but ", object_.type_name());
}

void Fields::fail(const char* name, std::string_view wanted) const {
  const nlohmann::json* found = find(name);
  throw Error(concat(where_, ".", name, found == nullptr ? " is missing; " : " is wrong; ",
                     "it must be ", wanted));
}

const nlohmann::json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& Fields::array(const char* name) const {
  const nlohmann::json* found = find(name);
  if (found == nullptr || !found->is_array()) fail(name, "an array");
  return *found;
}

std::optional<std::string> Fields::optional_text(const char* name) const {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) fail(name, "a text");
  return found->get<std::string>();
}

std::string Fields::text(const char* name) const {
  std::optional<std::string> found = optional_text(name);
  if (!found) fail(name, "a text");
  return *std::move(found);
}

std::string Fields::text_or(const char* name, std::string_view otherwise) const {
  return optional_text(name).value_or(std::string(otherwise));
}

char32_t Fields::character(const char* name) const {
  const std::string found = text(name);
  if (found.empty() || static_cast<std::size_t>(utf8_at(found, 0).length) != found.size()) {
    fail(name, "one character");
  }
  return utf8_at(found, 0).code;
}

bool Fields::flag(const char* name) const {
  const nlohmann::json* found = find(name);
  if (found == nullptr || !found->is_boolean()) fail(name, "true or false");
  return found->get<bool>();
}

bool Fields::flag_or(const char* name, bool otherwise) const {
  return find(name) == nullptr ? otherwise : flag(name);
}

std::int64_t Fields::number(const char* name, std::int64_t least, std::int64_t most) const {
  const nlohmann::json* found = find(name);
  const bool good = found != nullptr && found->is_number_integer() &&
                    (!found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX) &&
                    found->get<std::int64_t>() >= least && found->get<std::int64_t>() <= most;
  if (!good) fail(name, concat("a whole number from ", least, " to ", most));
  return found->get<std::int64_t>();
}

std::int64_t Fields::number_or(const char* name, std::int64_t otherwise, std::int64_t most) const {
  return find(name) == nullptr ? otherwise : number(name, 0, most);
}

}  // namespace bloomery::hf
