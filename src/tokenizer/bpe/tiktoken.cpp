#include "tokenizer/bpe/tiktoken.h"

#include <algorithm>
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

// The rank of a line, whose bytes replace what is in `bytes`; -1: no such line.
TokenId parse_line(std::string_view line, std::string& bytes) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const char* const end = line.data() + line.size();
  TokenId rank = -1;
  bytes.clear();
  if (space + 1 >= line.size() || !append_base64(line.substr(0, space), bytes)) return -1;
  const auto parsed = std::from_chars(line.data() + space + 1, end, rank);
  const bool good = parsed.ec == std::errc() && parsed.ptr == end && !bytes.empty();
  return good ? rank : -1;
}

Vocabulary parse_ranks(std::string_view text, const std::string& name) {
  // Ids need not follow one another, but a table by id must not dwarf the file.
  const std::size_t largest = text.size() * 2 + 65536;
  Vocabulary ranks;
  ranks.reserve(text.size() / 16, text.size() / 2);
  std::string bytes;
  int number = 0;
  hf::each_line(text, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    const TokenId rank = parse_line(line, bytes);
    check(rank >= 0 && static_cast<std::size_t>(rank) <= largest, name, ", line ", number,
          ": a token in base64, a space and its rank are expected");
    check(!ranks.has(rank), name, ": the vocabulary gives the id ", rank, " to two tokens, '",
          ranks.piece(rank).value_or(""), "' and '", bytes, "'");
    const std::size_t before = ranks.size();
    ranks.add(bytes, rank);
    check(ranks.size() > before, name, ": the vocabulary has the token '", bytes, "' twice");
  });
  check(ranks.size() > 0, name, " has no ranks");
  return ranks;
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

std::shared_ptr<const Tokenizer> parse_tiktoken(std::string_view text, const std::string& name,
                                                const std::string& pattern) {
  hf::ModelTables tables;
  tables.ranks = parse_ranks(text, name);
  tables.added_ids = true;
  const std::size_t count = tables.ranks->size();
  nlohmann::ordered_json settings = {{"model", {{"type", "BPE"}, {"ignore_merges", true}}},
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
  return make_hf_tokenizer(JsonFields::of(std::move(settings), name), tables, name, names);
}

bool looks_like_tiktoken(std::string_view beginning) {
  std::string bytes;
  return parse_line(beginning.substr(0, beginning.find_first_of("\r\n")), bytes) >= 0;
}

}  // namespace bloomery
