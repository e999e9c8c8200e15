// A line of JSONL, its text cut into sentences. What another parser accepts must be accepted here
// with the same text.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "fuzz.h"
#include "text/input/json_line.h"
#include "text/input/line_format.h"
#include "text/sentences/sentence_splitter.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_sentences(std::string_view text) {
  for (const bool keep_newlines : {false, true}) {
    std::vector<std::string_view> sentences;
    split_sentences(text, keep_newlines, sentences);
    const char* last = text.data();
    for (const std::string_view sentence : sentences) {
      require(!sentence.empty() && is_utf8(sentence) && sentence.data() >= last);
      last = sentence.data() + sentence.size();
    }
    require(last <= text.data() + text.size());
  }
}

// Whether the line may be nested deeper than we accept, which nlohmann does.
bool is_deep(std::string_view line) {
  std::size_t brackets = 0;
  for (const char byte : line) {
    brackets += byte == '[' || byte == '{' ? 1 : 0;
  }
  return brackets >= static_cast<std::size_t>(kMaxJsonDepth);
}

}  // namespace

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view line(reinterpret_cast<const char*>(input.data()), input.size());
  recognise_format("input", line);
  JsonLineParser parser({"text"});
  const bool good = parser.parse(line);
  if (good) {
    require(is_utf8(parser.text(0)));
    check_sentences(parser.text(0));
  } else {
    require(!parser.fault().empty());
  }
  if (is_deep(line) || line.find('\0') != line.npos) {  // a zero byte ends nlohmann's input
    return;
  }
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_object() && json.contains("text") && json["text"].is_string()) {
    require(good && parser.text(0) == json["text"].get_ref<const std::string&>());
  }
}

}  // namespace bloomery
