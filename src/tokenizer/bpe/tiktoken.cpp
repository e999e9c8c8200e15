#include "tokenizer/bpe/tiktoken.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/base64.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/model_tables.h"

namespace bloomery {
namespace {

// Every division of a token in two is looked up, so that its length must have a bound.
constexpr std::size_t kLongestToken = 1024;

struct Known {
  std::size_t count;  // of ranks
  const char* pattern;
  std::vector<std::pair<const char*, TokenId>> special;
};

const Known* known_by_count(std::size_t count) {
  static const Known kKnown[] = {
      {100256,
       "cl100k",
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {199998, "o200k", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
  };
  for (const Known& known : kKnown) {
    if (known.count == count) return &known;
  }
  return nullptr;
}

// The bytes of a line go to the end of `bytes`, its rank is what is returned; empty: no such line.
std::string_view parse_line(std::string_view line, std::string& bytes) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {};
  const std::string_view digits = line.substr(space + 1);
  TokenId rank = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const std::size_t before = bytes.size();
  const bool good = append_base64(line.substr(0, space), bytes) && bytes.size() > before &&
                    parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() &&
                    rank >= 0;
  return good ? digits : std::string_view();
}

hf::ModelTables parse_ranks(std::string text, const std::string& name) {
  hf::ModelTables tables;
  tables.vocab_kind = hf::ModelTables::Kind::object;
  tables.raw_bytes = tables.unique_ids = tables.added_ids = true;
  std::string& bytes = tables.kept.emplace_back();
  bytes.reserve(text.size());  // so that it stays where it is
  int number = 0;
  hf::each_line(tables.keep(std::move(text)), [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    const std::size_t before = bytes.size();
    const std::string_view rank = parse_line(line, bytes);
    check(!rank.empty(), name, ", line ", number,
          ": a token in base64, a space and its rank are expected");
    const std::size_t size = bytes.size() - before;
    check(size <= kLongestToken, name, ", line ", number, ": a token of ", size, " bytes; at most ",
          kLongestToken, " are supported");
    tables.vocab.push_back({{bytes.data() + before, size}, rank});
  });
  check(!tables.vocab.empty(), name, " has no ranks");
  return tables;
}

std::string chosen_pattern(const std::string& file, const std::string& name, std::size_t count) {
  std::string names;
  for (const std::string& known : pattern_names()) {
    names += (names.empty() ? "" : ", ") + known;
  }
  if (!name.empty()) {
    std::optional<SplitPattern> pattern = pattern_named(name);
    if (!pattern) pattern = known_pattern(name, regex::Dialect::rust);
    check(pattern.has_value(), "--pattern '", name, "' is not known; give one of ", names,
          " or the regular expression of one of them");
    return name_of(*pattern);
  }
  const Known* known = known_by_count(count);
  check(known != nullptr, file, " has ", count,
        " ranks, which is neither cl100k_base (100256) nor o200k_base (199998); say how texts are "
        "split with --pattern: one of ",
        names);
  return known->pattern;
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tiktoken(const std::filesystem::path& path,
                                               const std::string& pattern) {
  return parse_tiktoken(read_file(path), path.string(), pattern);
}

std::shared_ptr<const Tokenizer> parse_tiktoken(std::string text, const std::string& name,
                                                const std::string& pattern) {
  const hf::ModelTables tables = parse_ranks(std::move(text), name);
  const std::size_t count = tables.vocab.size();
  nlohmann::json settings = {{"model", {{"type", "BPE"}, {"ignore_merges", true}}},
                             {"pre_tokenizer",
                              {{"type", "ByteLevel"},
                               {"add_prefix_space", false},
                               {"pattern", chosen_pattern(name, pattern, count)}}},
                             {"decoder", {{"type", "ByteLevel"}}}};
  SpecialTokenNames names{.usual = false};
  if (const Known* known = known_by_count(count)) {
    for (const auto& [content, id] : known->special) {
      settings["added_tokens"].push_back({{"content", content}, {"id", id}, {"special", true}});
    }
    names.eos = known->special[0].first;
  }
  return make_hf_tokenizer(settings, tables, name, names);
}

bool looks_like_tiktoken(std::string_view beginning) {
  std::string bytes;
  return !parse_line(beginning.substr(0, beginning.find_first_of("\r\n")), bytes).empty();
}

}  // namespace bloomery
