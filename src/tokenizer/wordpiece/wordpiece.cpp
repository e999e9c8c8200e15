#include "tokenizer/wordpiece/wordpiece.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/utf8.h"
#include "tokenizer/wordpiece/bert_text.h"
#include "tokenizer/wordpiece/decode.h"
#include "tokenizer/wordpiece/model.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMostExtraIds = 1'000'000;

std::string_view without_trailing_space(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < line.size();) {
    const Utf8Char next = utf8_at(line, at);
    at += static_cast<std::size_t>(next.length);
    if (!is_bert_space(next.code)) end = at;
  }
  return line.substr(0, end);
}

std::vector<std::string> read_lines(std::string_view contents, std::string_view name) {
  check(is_utf8(contents), name, ": not valid UTF-8 from byte ", valid_utf8_prefix(contents));
  std::vector<std::string> lines;
  while (!contents.empty()) {
    const std::size_t end = std::min(contents.find('\n'), contents.size());
    lines.emplace_back(without_trailing_space(contents.substr(0, end)));
    contents.remove_prefix(std::min(end + 1, contents.size()));
  }
  return lines;
}

// The pieces by id and by text.
class Pieces {
 public:
  explicit Pieces(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::size_t i = 0; i < texts_.size(); ++i) ids_[texts_[i]] = static_cast<TokenId>(i);
    file_size_ = texts_.size();
  }

  TokenId add(const std::string& text) {
    const auto [found, is_new] = ids_.try_emplace(text, static_cast<TokenId>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  std::optional<TokenId> find(std::string_view text) const {
    const auto found = ids_.find(std::string(text));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& text(TokenId id) const { return texts_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return texts_.size(); }
  // The lines of the file; later ones were added.
  std::span<const std::string> of_file() const { return {texts_.data(), file_size_}; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, TokenId> ids_;
  std::size_t file_size_;
};

WordPieceModel make_model(const Pieces& pieces, TokenId unknown, std::size_t longest_word) {
  std::vector<ByteTrie::Entry> entries;
  for (const std::string& text : pieces.of_file()) {
    entries.push_back({text, static_cast<TokenId>(entries.size())});
  }
  return WordPieceModel(entries, {.unknown = unknown, .longest_word = longest_word});
}

class WordPieceTokenizer : public Tokenizer {
 public:
  WordPieceTokenizer(Pieces pieces, TokenId unknown, const WordPieceOptions& options)
      : pieces_(std::move(pieces)), model_(make_model(pieces_, unknown, options.longest_word)) {
    const bool lowercase = options.lowercase.value_or(!pieces_.find("A").has_value());
    text_options_.lowercase = text_options_.strip_accents = lowercase;
    special_.unk = unknown;
    special_.cls = parsed("[CLS]");
    special_.sep = parsed("[SEP]");
    special_.pad = parsed("[PAD]");
    special_.mask = parsed("[MASK]");
    parsed("[UNK]");
    if (options.megatron) {
      special_.bos = added("[BOS]");
      special_.eos = added("[EOS]");
      for (std::int64_t i = 0; i < options.extra_ids; ++i) added(concat("<extra_id_", i, ">"));
    }
    std::vector<ByteTrie::Entry> entries;
    for (const TokenId id : parsed_) entries.push_back({pieces_.text(id), id});
    parsed_trie_ = ByteTrie(entries);
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    bool is_first = true;
    for (const TokenId id : ids) {
      check(id >= 0 && id < vocab_size(), "token id ", id, " is outside the vocabulary of ",
            vocab_size(), " pieces");
      append_wordpiece(text, pieces_.text(id), is_first);
      is_first = false;
    }
    return text;
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::string piece(TokenId id) const override {
    return id >= 0 && id < vocab_size() ? pieces_.text(id) : std::string();
  }
  std::optional<TokenId> find(std::string_view piece) const override { return pieces_.find(piece); }
  const SpecialTokens& special() const override { return special_; }

 private:
  friend class WordPieceEncoder;

  std::optional<TokenId> parsed(std::string_view text) {
    const auto id = pieces_.find(text);
    if (id) parsed_.push_back(*id);
    return id;
  }
  TokenId added(const std::string& text) {
    parsed_.push_back(pieces_.add(text));
    return parsed_.back();
  }

  Pieces pieces_;
  WordPieceModel model_;
  BertTextOptions text_options_;
  SpecialTokens special_;
  std::vector<TokenId> parsed_;  // special tokens that are recognised in the text
  ByteTrie parsed_trie_;
};

class WordPieceEncoder : public Encoder {
 public:
  WordPieceEncoder(const WordPieceTokenizer& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer),
        parse_(options.parse_special),
        add_(options.add_special_tokens),
        splitter_(tokenizer.text_options_) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    const SpecialTokens& special = tokenizer_.special();
    if (add_ && special.cls) ids.push_back(*special.cls);
    std::size_t done = 0;
    for (std::size_t at = 0; parse_; ++at) {
      at = text.find_first_of(kFirstBytes, at);
      if (at == std::string_view::npos) break;
      const ByteTrie::Match token = tokenizer_.parsed_trie_.longest(text, at);
      if (token.length == 0) continue;
      encode_text(text.substr(done, at - done), ids);
      ids.push_back(token.value);
      done = at + token.length;
      at = done - 1;
    }
    encode_text(text.substr(done), ids);
    if (add_ && special.sep) ids.push_back(*special.sep);
  }

 private:
  static constexpr std::string_view kFirstBytes = "[<";  // of every special token

  void encode_text(std::string_view text, std::vector<TokenId>& ids) {
    splitter_.split(text, [&](std::string_view word) { tokenizer_.model_.encode(word, ids); });
  }

  const WordPieceTokenizer& tokenizer_;
  bool parse_, add_;
  BertWordSplitter splitter_;
};

std::unique_ptr<Encoder> WordPieceTokenizer::make_encoder(const EncodeOptions& options) const {
  return std::make_unique<WordPieceEncoder>(*this, options);
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_wordpiece(std::string_view contents, std::string_view name,
                                                 const WordPieceOptions& options) {
  check(options.extra_ids >= 0 && options.extra_ids <= kMostExtraIds, "vocab-extra-ids is ",
        options.extra_ids, "; it must be between 0 and ", kMostExtraIds);
  Pieces pieces(read_lines(contents, name));
  const auto unknown = pieces.find("[UNK]");
  check(unknown.has_value(), name, ": no line [UNK] among ", pieces.size(),
        "; a WordPiece vocabulary has one piece on each line");
  return std::make_shared<WordPieceTokenizer>(std::move(pieces), *unknown, options);
}

std::shared_ptr<const Tokenizer> load_wordpiece(const std::filesystem::path& vocab_txt,
                                                const WordPieceOptions& options) {
  return parse_wordpiece(read_file(vocab_txt), vocab_txt.string(), options);
}

}  // namespace bloomery
