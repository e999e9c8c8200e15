// Fields of the objects in a tokenizer.json: each is checked, and an error names the place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery::hf {

class Fields {
 public:
  // `where` names the object in messages: "normalizer". Throws if `object` is not an object.
  Fields(const nlohmann::json& object, std::string where);

  const nlohmann::json* find(const char* name) const;  // null when absent or null
  const nlohmann::json& array(const char* name) const;
  std::string text(const char* name) const;
  std::string text_or(const char* name, std::string_view otherwise) const;
  std::optional<std::string> optional_text(const char* name) const;
  char32_t character(const char* name) const;  // a text of one character
  bool flag(const char* name) const;
  bool flag_or(const char* name, bool otherwise) const;
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) const;
  std::int64_t number_or(const char* name, std::int64_t otherwise, std::int64_t most) const;

  const std::string& where() const { return where_; }
  // The component's "type".
  std::string type() const { return text("type"); }
  [[noreturn]] void fail(const char* name, std::string_view wanted) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace bloomery::hf
