#include "tokenizer/bpe/tiktoken.h"

#include <charconv>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/base64.h"
#include "tokenizer/bpe/byte_tokenizer.h"

namespace bloomery {
namespace {

// Every division of a token in two is looked up, so that its length must have a bound.
constexpr std::size_t kLongestToken = 1024;

struct Known {
  std::size_t count;  // of ranks
  SplitPattern pattern;
  std::vector<ByteToken> special;
};

const Known* known_by_count(std::size_t count) {
  static const Known kKnown[] = {
      {100256,
       SplitPattern::cl100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {199998, SplitPattern::o200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
  };
  for (const Known& known : kKnown) {
    if (known.count == count) return &known;
  }
  return nullptr;
}

std::optional<ByteToken> parse_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::optional<std::string> bytes = from_base64(line.substr(0, space));
  const char* end = line.data() + line.size();
  TokenId rank = 0;
  const auto parsed = std::from_chars(line.data() + space + 1, end, rank);
  if (!bytes || bytes->empty() || parsed.ec != std::errc() || parsed.ptr != end || rank < 0)
    return std::nullopt;
  return ByteToken{std::move(*bytes), rank};
}

// Calls add(line, number) for each line that is not empty.
void each_line(std::string_view text, const std::function<void(std::string_view, int)>& add) {
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) add(line, number);
  }
}

std::vector<ByteToken> parse_ranks(std::string_view text, const std::string& name) {
  std::vector<ByteToken> tokens;
  each_line(text, [&](std::string_view line, int number) {
    std::optional<ByteToken> token = parse_line(line);
    check(token.has_value(), name, ", line ", number,
          ": a token in base64, a space and its rank are expected");
    check(token->bytes.size() <= kLongestToken, name, ", line ", number, ": a token of ",
          token->bytes.size(), " bytes; at most ", kLongestToken, " are supported");
    tokens.push_back(std::move(*token));
  });
  check(!tokens.empty(), name, " has no ranks");
  return tokens;
}

// tiktoken merges any two neighbours that together are a token, by that token's rank.
std::vector<Merge> merges_of(const std::vector<ByteToken>& tokens) {
  const ByteVocabulary vocabulary(tokens);
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    check(vocabulary.find({&letter, 1}).has_value(), "the rank file has no token for the byte ",
          byte, "; every byte must have one");
  }
  std::vector<Merge> merges;
  for (const ByteToken& token : tokens) {
    const std::string_view bytes = token.bytes;
    for (std::size_t at = 1; at < bytes.size(); ++at) {
      const std::optional<TokenId> left = vocabulary.find(bytes.substr(0, at));
      if (!left) continue;
      const std::optional<TokenId> right = vocabulary.find(bytes.substr(at));
      if (right) merges.push_back({*left, *right, token.id, token.id});
    }
  }
  return merges;
}

SplitPattern chosen_pattern(const std::string& file, const std::string& name, std::size_t count) {
  std::string names;
  for (const std::string& known : pattern_names()) {
    names += (names.empty() ? "" : ", ") + known;
  }
  if (!name.empty()) {
    std::optional<SplitPattern> pattern = pattern_named(name);
    if (!pattern) pattern = known_pattern(name, regex::Dialect::rust);
    check(pattern.has_value(), "--pattern '", name, "' is not known; give one of ", names,
          " or the regular expression of one of them");
    return *pattern;
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
  std::vector<ByteToken> tokens = parse_ranks(text, name);
  const std::size_t count = tokens.size();
  const SplitPattern split = chosen_pattern(name, pattern, count);
  const std::vector<Merge> merges = merges_of(tokens);
  ByteTokenizerParts parts{
      .model = ByteBpe(std::move(tokens), merges, {.whole_piece_first = true}),
      .pattern = split,
  };
  if (const Known* known = known_by_count(count)) {
    parts.extra = parts.in_text = known->special;
    parts.special.eod = parts.special.eos = known->special[0].id;
  }
  return std::make_shared<ByteTokenizer>(std::move(parts));
}

bool looks_like_tiktoken(std::string_view beginning) {
  return parse_line(beginning.substr(0, beginning.find_first_of("\r\n"))).has_value();
}

}  // namespace bloomery
