#include "tokenizer/hf/model_tables.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

constexpr int kDeepest = 100;  // components hold components; reading them takes stack
// Room for as many items as there could be, of so many bytes each: what is not used costs nothing,
// whereas growing costs a copy.
constexpr std::size_t kFewBytes = 12;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool ends_scalar(char c) {
  return is_space(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' ||
         c == '"';
}

// Walks over a JSON text, and takes the tables of a model out on the way.
class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name, ModelTables& tables)
      : text_(text), name_(name), tables_(tables) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid != text.size()) fail("no UTF-8", valid);
  }

  // The text without the tables.
  std::string read_tokenizer() {
    value(0, [&](std::string_view key) {
      if (key != "model") return value(1);
      value(1, [&](std::string_view part) {
        if (part == "vocab") return take(tables_.vocab_kind, [&] { read_vocab(); });
        if (part == "merges") return take(tables_.merges_kind, [&] { read_merges(); });
        value(2);
      });
    });
    rest_.append(text_, done_);
    return std::move(rest_);
  }

  void read_vocab() {
    check(tables_.vocab.empty(), name_, ": model.vocab is there twice");
    tables_.vocab.reserve((text_.size() - at_) / kFewBytes);
    const bool is_object = peek() == '{';
    each([&] {
      ModelTables::Token token;
      if (is_object) {
        token.piece = string();
        expect(':');
        token.value = scalar();
      } else {
        const std::size_t begin = at_;
        if (peek() != '[')
          return bad_item("model.vocab", tables_.vocab.size(), "a piece and its score");
        ++at_;
        skip_space();
        if (peek() == '"') {
          token.piece = string();
          expect(',');
          token.value = scalar();
        }
        if (peek() != ']' || token.value.empty() || token.value[0] == '"') {
          at_ = begin;
          return bad_item("model.vocab", tables_.vocab.size(), "a piece and its score");
        }
        ++at_;
      }
      tables_.vocab.push_back(token);
    });
  }

  [[noreturn]] void fail(std::string_view what, std::size_t at) const {
    throw Error(concat(name_, " is not valid JSON: ", what, " at byte ", at));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  void expect_end() {
    skip_space();
    if (at_ != text_.size()) fail("something follows the object", at_);
  }

 private:
  void bad_item(const char* table, std::size_t place, const char* wanted) const {
    throw Error(concat(name_, ": ", table, "[", place, "] is not ", wanted));
  }

  void expect(char wanted) {
    skip_space();
    if (peek() != wanted) fail(concat("no '", wanted, "'"), at_);
    ++at_;
    skip_space();
  }

  std::string_view string() {
    if (peek() != '"') fail("no string", at_);
    const std::size_t begin = ++at_;
    at_ = end_of_plain(text_, at_);
    if (peek() == '"') return text_.substr(begin, at_++ - begin);
    std::string plain(text_, begin, at_ - begin);
    while (peek() != '"') {
      const JsonEscape escape = peek() == '\\' ? read_escape(text_, at_) : JsonEscape{};
      if (escape.length == 0) fail("a string with an end or an escape that is none", at_);
      append_utf8(plain, escape.code);
      const std::size_t next = at_ + escape.length;
      at_ = end_of_plain(text_, next);
      plain.append(text_, next, at_ - next);
    }
    ++at_;
    return tables_.keep(std::move(plain));
  }

  // A number, word or string as it is written.
  std::string_view scalar() {
    const std::size_t begin = at_;
    if (peek() == '"') {
      string();
    } else {
      while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
    }
    const std::string_view found = text_.substr(begin, at_ - begin);
    skip_space();
    return found;
  }

  // item() for each item of the array, or member of the object, that starts here.
  template <class Item>
  void each(const Item& item) {
    const char end = peek() == '{' ? '}' : ']';
    ++at_;
    skip_space();
    while (peek() != end) {
      item();
      skip_space();
      if (peek() == end) break;
      expect(',');
      if (peek() == end) fail("a comma before nothing", at_);
    }
    ++at_;
  }

  // Passes over a value; member(key) must pass over the value of a member, if this is an object.
  template <class Member>
  void value(int depth, const Member& member) {
    check(depth < kDeepest, name_, " nests its objects more than ", kDeepest, " deep");
    skip_space();
    if (peek() == '{') {
      each([&] {
        const std::string_view key = string();
        expect(':');
        member(key);
      });
    } else if (peek() == '[') {
      each([&] { value(depth + 1); });
    } else if (scalar().empty()) {
      fail("no value", at_);
    }
  }
  void value(int depth) {
    value(depth, [&](std::string_view) { value(depth + 1); });
  }

  // read() passes over the value here, which is left out of the rest if it is a table.
  template <class Read>
  void take(ModelTables::Kind& kind, const Read& read) {
    using Kind = ModelTables::Kind;
    kind = peek() == '{' ? Kind::object : peek() == '[' ? Kind::array : Kind::other;
    if (kind == Kind::other) return value(2);
    rest_.append(text_, done_, at_ - done_);
    rest_ += "[]";
    read();
    done_ = at_;
  }

  void read_merges() {
    check(tables_.merges.empty(), name_, ": model.merges is there twice");
    tables_.merges.reserve((text_.size() - at_) / kFewBytes);
    if (peek() == '{') return value(2);
    each([&] {
      const auto place = static_cast<std::int64_t>(tables_.merges.size());
      if (peek() == '"') {
        const std::string_view text = string();
        if (text.starts_with("#version")) return;
        const std::size_t space = text.find(' ');
        check(space != text.npos && text.find(' ', space + 1) == text.npos, name_,
              ": model.merges[", place, "] is '", text,
              "'; it must be two tokens with a space between");
        tables_.merges.add({text.substr(0, space), text.substr(space + 1), place});
        return;
      }
      if (peek() != '[') return bad_item("model.merges", tables_.merges.size(), "two tokens");
      std::string_view parts[2];
      std::size_t count = 0;
      each([&] {
        if (peek() != '"' || count == 2) {
          return bad_item("model.merges", tables_.merges.size(), "two tokens");
        }
        parts[count++] = string();
      });
      if (count != 2) return bad_item("model.merges", tables_.merges.size(), "two tokens");
      tables_.merges.add({parts[0], parts[1], place});
    });
  }

  std::string_view text_;
  const std::string& name_;
  ModelTables& tables_;
  std::size_t at_ = 0, done_ = 0;  // done: what of the text is in rest_ or taken out
  std::string rest_;
};

}  // namespace

// Lines are those of merges that follow one another; a merge of which that is not so is no note.
void ModelTables::Merges::add(const Merge& merge) {
  if (notes_.empty()) first_line_ = merge.line;
  const auto is_whole = [&](std::string_view piece) {
    return piece.size() == merge.left.size() + merge.right.size() &&
           piece.starts_with(merge.left) && piece.ends_with(merge.right);
  };
  // The first result is somewhere after the characters.
  while (others_.empty() && notes_.empty() && next_ < vocab_.size() &&
         !is_whole(vocab_[next_].piece)) {
    ++next_;
  }
  if (next_ < vocab_.size() && is_whole(vocab_[next_].piece) &&
      merge.line == first_line_ + static_cast<std::int64_t>(notes_.size())) {
    notes_.push_back(
        {static_cast<std::uint32_t>(next_++), static_cast<std::uint32_t>(merge.left.size())});
  } else {
    notes_.push_back({kNone, static_cast<std::uint32_t>(others_.size())});
    others_.push_back(merge);
  }
}

ModelTables::Merge ModelTables::Merges::operator[](std::size_t i) const {
  const auto [token, left] = notes_[i];
  if (token == kNone) return others_[left];
  const std::string_view piece = vocab_[token].piece;
  return {piece.substr(0, left), piece.substr(left), first_line_ + static_cast<std::int64_t>(i)};
}

nlohmann::ordered_json read_tokenizer_json(std::string_view text, const std::string& name,
                                           ModelTables& tables) {
  const std::string rest = TableReader(text, name, tables).read_tokenizer();
  try {
    return nlohmann::ordered_json::parse(rest);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    throw Error(concat(name, " is not valid JSON: ", error.what()));
  }
}

void read_vocab_json(std::string text, const std::string& name, ModelTables& tables) {
  TableReader reader(tables.keep(std::move(text)), name, tables);
  reader.skip_space();
  check(reader.peek() == '{', name,
        " is not a vocabulary: a JSON object that gives each token its id is expected");
  reader.read_vocab();
  reader.expect_end();
  tables.vocab_kind = ModelTables::Kind::object;
}

bool has_token(const ModelTables& tables, std::string_view piece) {
  return std::ranges::find(tables.vocab, piece, &ModelTables::Token::piece) != tables.vocab.end();
}

void add_known(std::initializer_list<const char*> names, const ModelTables& tables,
               nlohmann::ordered_json& added) {
  for (const char* name : names) {
    if (has_token(tables, name)) added.push_back({{"content", name}, {"special", true}});
  }
}

void each_token(const ModelTables& tables,
                const std::function<void(std::string_view, TokenId)>& visit) {
  check(tables.vocab_kind == ModelTables::Kind::object,
        "model.vocab is not an object of tokens and ids");
  for (std::size_t i = 0; i < tables.vocab.size(); ++i) {
    visit(tables.vocab[i].piece, id_at(tables, i));
  }
}

TokenId id_at(const ModelTables& tables, std::size_t place) {
  const auto& [piece, value] = tables.vocab[place];
  if (value.empty()) return static_cast<TokenId>(place);
  // Ids need not follow one another, but a table by id must not dwarf the file.
  const std::size_t largest = tables.vocab.size() * 16 + 65536;
  TokenId id = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, id);
  check(read.ec == std::errc() && read.ptr == end && id >= 0 &&
            static_cast<std::size_t>(id) <= largest,
        "model.vocab: the id of '", piece, "' is ", value,
        "; it must be a whole number (an integer) up to ", largest);
  return id;
}

Vocabulary read_vocabulary(const ModelTables& tables) {
  std::size_t bytes = 0;
  for (const auto& [piece, value] : tables.vocab) bytes += piece.size();
  Vocabulary vocabulary;
  vocabulary.reserve(tables.vocab.size(), bytes);
  each_token(tables, [&](std::string_view piece, TokenId id) {
    if (tables.unique_ids) {
      check(!vocabulary.has(id), "the vocabulary gives the id ", id, " to two tokens, '",
            vocabulary.piece(id).value_or(""), "' and '", piece, "'");
    }
    vocabulary.add(piece, id);
  });
  return vocabulary;
}

}  // namespace bloomery::hf
