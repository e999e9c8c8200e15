// One JSON object per line: checks the whole line and takes out the texts of some keys.
//
// The rules are RFC 8259's, with what Python's json.loads takes besides: NaN, Infinity and
// -Infinity as numbers; of a key that comes twice, the last value counts. Stricter than Python: the
// line must be valid UTF-8, and an escaped half of a surrogate pair is a fault, because no UTF-8
// text can hold it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

inline constexpr int kMaxJsonDepth = 1024;

class JsonLineParser {
 public:
  // Keys of the object itself, not of objects inside it.
  explicit JsonLineParser(std::vector<std::string> keys);

  // True when the line, which may have white space around the object, is good and every key is
  // there with a string. The line must stay while the texts are used.
  bool parse(std::string_view line);

  // Of a good line; valid until the next parse.
  std::string_view text(std::size_t key) const { return values_[key].text; }
  // Where that text stands in the line, its quotes included.
  std::string_view token(std::size_t key) const { return values_[key].token; }
  // Of a bad line: what is wrong, and at which byte of it where that says more.
  const std::string& fault() const { return fault_; }

 private:
  enum class Kind { absent, text, other };
  struct Value {
    Kind kind = Kind::absent;
    std::string_view text, token;
    std::string unescaped;
  };

  bool fail(std::string_view why, std::size_t at);
  bool check_keys();
  void skip_space();
  bool parse_object_of_line();
  bool parse_member();
  bool parse_string(std::string_view& text, std::string& unescaped);
  bool skip_string();
  bool skip_value();
  bool skip_scalar();
  bool open_container();
  bool close_containers();
  bool skip_member_name();
  bool skip_number();
  bool skip_word(std::string_view word);
  Value* wanted(std::string_view key);
  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }

  std::vector<std::string> keys_;
  std::vector<Value> values_;  // of keys_
  std::string key_;            // unescaped
  std::vector<char> open_;     // the brackets around at_, below the object of the line
  std::string_view line_;
  std::size_t at_ = 0;
  std::string fault_;
};

}  // namespace bloomery
