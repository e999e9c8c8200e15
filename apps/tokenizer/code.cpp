// `bloomery tokenizer encode` and `decode`.
#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/common/command_line.h"
#include "apps/tokenizer/answer_lines.h"
#include "apps/tokenizer/tokenizer.h"
#include "base/error.h"
#include "base/json_scan.h"
#include "base/thread_pool.h"
#include "text/input/json_line.h"
#include "tokenizer/load.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

struct CodeOptions {
  TokenizerOptions tokenizer;
  std::vector<std::string> inputs;
  bool jsonl = false;
  std::string json_key = "text";
  bool add_special_tokens = false, no_parse_special = false;
  int workers = 0;
};

void describe(OptionTable& t, CodeOptions& o, bool encode) {
  describe(t, o.tokenizer);
  t.section("input");
  t.add("input", o.inputs, "Input files; none: standard input.");
  t.add("jsonl", o.jsonl,
        encode ? "Read one document per line, a JSON string or an object, and print an array of "
                 "ids per line."
               : "Read one JSON array of ids per line, and print a JSON string per line.");
  t.add("workers", o.workers, "Threads with --jsonl; 0: all cores.", between(0, 4096));
  if (!encode) return;
  t.add("json-key", o.json_key, "JSON key of the text when a line is an object.")
      .alias("json-keys");
  t.section("special tokens");
  t.add("add-special-tokens", o.add_special_tokens,
        "Let the post-processor add special tokens, such as [CLS] or <s>.");
  t.add("no-parse-special", o.no_parse_special, "Encode special tokens in the text as plain text.");
}

// True when the command is done: help was asked for.
bool read_code_options(const Arguments& arguments, bool encode, CodeOptions& options,
                       std::ostream& out) {
  OptionTable table;
  describe(table, options, encode);
  if (!read_options(table, arguments, out,
                    concat("usage: bloomery tokenizer ", encode ? "encode" : "decode",
                           " --tokenizer PATH [OPTIONS]\n\n",
                           encode ? "Encodes text to token ids.\n\nexample:\n"
                                    "  bloomery tokenizer encode --tokenizer run/tokenizer "
                                    "--input my.txt\n"
                                  : "Decodes token ids to text.\n\nexample:\n"
                                    "  echo 15496 995 | bloomery tokenizer decode --tokenizer "
                                    "run/tokenizer\n"))) {
    return true;
  }
  if (options.workers == 0) options.workers = ThreadPool().num_threads();
  return false;
}

nlohmann::json parse_line(std::string_view line) {
  check_json_depth(line);
  try {
    return nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(concat("not valid JSON: ", error.what()));
  }
}

std::string document_of(std::string_view line, const std::string& key) {
  nlohmann::json value = parse_line(line);
  if (value.is_object()) {
    const auto found = value.find(key);
    check(found != value.end(), "the object has no key '", key, "'; --json-key names another");
    value = nlohmann::json(std::move(*found));
  }
  check(value.is_string(), "the document is not a text but ", value.type_name());
  return std::move(value.get_ref<std::string&>());
}

void append_number(TokenId id, std::string& text) {
  char digits[16];
  const auto written = std::to_chars(digits, digits + sizeof digits, id);
  text.append(digits, written.ptr);
}

std::vector<TokenId> ids_of(std::string_view line) {
  const nlohmann::json value = parse_line(line);
  check(value.is_array(), "the line holds no array of ids but ", value.type_name());
  std::vector<TokenId> ids;
  ids.reserve(value.size());
  for (const nlohmann::json& id : value) {
    check(id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX, id.dump(),
          " is not a token id");
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

std::vector<TokenId> ids_of_words(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n,";
  std::vector<TokenId> ids;
  for (std::size_t at = text.find_first_not_of(kSpaces); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    TokenId id = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), id);
    check(read.ec == std::errc() && read.ptr == word.data() + word.size() && id >= 0, "'", word,
          "' at byte ", at, " is not a token id");
    ids.push_back(id);
    at = text.find_first_not_of(kSpaces, end);
  }
  return ids;
}

// The four digits of each number below 10,000.
constexpr auto kFourDigits = [] {
  std::array<char, 4 * 10000 + 4> digits{};
  for (std::size_t number = 0; number < 10000; ++number) {
    for (std::size_t i = 0, left = number; i < 4; ++i, left /= 10) {
      digits[4 * number + 3 - i] = static_cast<char>('0' + left % 10);
    }
  }
  return digits;
}();

// Writes up to four bytes more than it returns.
char* write_number(char* at, TokenId id) {
  const auto number = static_cast<std::uint32_t>(id);
  if (id < 0 || number >= 100'000'000) return std::to_chars(at, at + 11, id).ptr;
  const auto put = [&](std::size_t part, std::size_t zeros) {
    std::memcpy(at, &kFourDigits[4 * part + zeros], 4);
    at += 4 - zeros;
  };
  const auto put_first = [&](std::uint32_t part) {
    put(part, part < 10 ? 3 : part < 100 ? 2 : part < 1000 ? 1 : 0);
  };
  put_first(number < 10000 ? number : number / 10000);
  if (number >= 10000) put(number % 10000, 0);
  return at;
}

// Written into room for the longest numbers: appending them one by one would take as long as
// encoding.
void append_array(const std::vector<TokenId>& ids, std::string& text) {
  constexpr std::size_t kLongest = 13;  // a sign, ten digits, ", "
  const std::size_t before = text.size();
  text.resize(before + ids.size() * kLongest + 2 + 4);
  char* at = text.data() + before;
  *at++ = '[';
  for (const TokenId id : ids) {
    at = write_number(at, id);
    *at++ = ',';
    *at++ = ' ';
  }
  if (!ids.empty()) at -= 2;
  *at++ = ']';
  text.resize(static_cast<std::size_t>(at - text.data()));
}

// Of one thread.
struct LineEncoder {
  std::unique_ptr<Encoder> encoder;
  JsonLineParser parser;  // for objects, which it reads fast; what it refuses is looked at again
  std::vector<TokenId> ids;
};

void encode_lines(const CodeOptions& options, const Tokenizer& tokenizer, const EncodeOptions& how,
                  std::ostream& out) {
  std::vector<LineEncoder> encoders;
  for (int i = 0; i < options.workers; ++i) {
    encoders.push_back({tokenizer.make_encoder(how), JsonLineParser({options.json_key}), {}});
  }
  answer_lines(
      options.inputs, options.workers,
      [&](std::size_t worker, std::string_view line, std::string& answer) {
        LineEncoder& its = encoders[worker];
        its.ids.clear();
        if (line.starts_with('{') && its.parser.parse(line)) {
          its.encoder->encode(its.parser.text(0), its.ids);
        } else {
          its.encoder->encode(document_of(line, options.json_key), its.ids);
        }
        append_array(its.ids, answer);
      },
      out);
}

}  // namespace

int tokenizer_encode(const Arguments& arguments, std::ostream& out) {
  CodeOptions options;
  if (read_code_options(arguments, true, options, out)) return 0;
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  const EncodeOptions how{.add_special_tokens = options.add_special_tokens,
                          .parse_special = !options.no_parse_special};
  if (options.jsonl) {
    encode_lines(options, *tokenizer, how, out);
    return 0;
  }
  const std::string text = read_whole(options.inputs);
  const std::size_t valid = valid_utf8_prefix(text);
  check(valid == text.size(), "the input is not UTF-8: byte ", valid, " begins no character");
  std::vector<TokenId> ids;
  tokenizer->make_encoder(how)->encode(text, ids);
  std::string line;
  for (const TokenId id : ids) {
    if (!line.empty()) line += ' ';
    append_number(id, line);
  }
  out << line << '\n';
  return 0;
}

int tokenizer_decode(const Arguments& arguments, std::ostream& out) {
  CodeOptions options;
  if (read_code_options(arguments, false, options, out)) return 0;
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  if (!options.jsonl) {
    out << tokenizer->decode(ids_of_words(read_whole(options.inputs)));
    return 0;
  }
  answer_lines(
      options.inputs, options.workers,
      [&](std::size_t, std::string_view line, std::string& answer) {
        answer += nlohmann::json(tokenizer->decode(ids_of(line))).dump();
      },
      out);
  return 0;
}

}  // namespace bloomery
