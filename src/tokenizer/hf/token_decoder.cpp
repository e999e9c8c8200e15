#include "tokenizer/hf/token_decoder.h"

#include <algorithm>

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/hf/metaspace.h"
#include "tokenizer/hf/splitting.h"
#include "tokenizer/hf/text_pattern.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

using Tokens = std::vector<std::string>;

std::string join(const Tokens& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = from.empty() ? text.npos : text.find(from);
  if (at == text.npos) return;
  std::string result;
  std::size_t done = 0;
  for (; at != text.npos; at = text.find(from, done)) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  text = result.append(text, done);
}

// Takes back the spaces that word-wise tokens have before punctuation and in contractions.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

class Sequence : public Decoder {
 public:
  explicit Sequence(const JsonFields& fields) {
    for (const JsonFields& part : fields.get<std::vector<JsonFields>>("decoders")) {
      parts_.push_back(read_decoder(part));
    }
  }
  void apply(Tokens& tokens) const override {
    for (const auto& part : parts_) part->apply(tokens);
  }
  bool is_byte_level() const override { return parts_.size() == 1 && parts_[0]->is_byte_level(); }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

class ByteLevel : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += byte_level_bytes(token);
    tokens.assign(1, repair_utf8(bytes));
  }
  bool is_byte_level() const override { return true; }
};

class Metaspace : public Decoder {
 public:
  explicit Metaspace(const JsonFields& fields)
      : keeps_first_(read_prepend_scheme(fields) == PrependScheme::never) {
    append_utf8(mark_, read_character(fields, "replacement"));
  }
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark_, i == 0 && !keeps_first_ ? "" : " ");
    }
  }

 private:
  bool keeps_first_;
  std::string mark_;
};

class WordPiece : public Decoder {
 public:
  explicit WordPiece(const JsonFields& fields)
      : prefix_(fields.find<std::string>("prefix").value_or("##")),
        cleanup_(fields.find<bool>("cleanup").value_or(true)) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleanup_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

// The byte of a token <0x41>, or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  // A sign is a digit to the reference's parser: <0x+7> is the byte 7.
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// A run of byte tokens becomes the text that its bytes are, or as many U+FFFD.
class ByteFallback : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens result;
    result.reserve(tokens.size());
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_utf8(bytes)) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = fallback_byte(token);
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
      } else {
        flush();
        result.push_back(std::move(token));
      }
    }
    flush();
    tokens = std::move(result);
  }
};

class Fuse : public Decoder {
 public:
  void apply(Tokens& tokens) const override { tokens.assign(1, join(tokens)); }
};

class Strip : public Decoder {
 public:
  explicit Strip(const JsonFields& fields)
      : start_(fields.whole("start", 0, INT32_MAX)), stop_(fields.whole("stop", 0, INT32_MAX)) {
    append_utf8(content_, read_character(fields, "content"));
  }
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::size_t begin = 0, end = token.size();
      const std::string_view view = token;
      for (std::int64_t i = 0; i < start_ && view.substr(begin).starts_with(content_); ++i) {
        begin += content_.size();
      }
      for (std::int64_t i = 0; i < stop_ && view.substr(begin, end - begin).ends_with(content_);
           ++i) {
        end -= content_.size();
      }
      token = token.substr(begin, end - begin);
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class Replace : public Decoder {
 public:
  explicit Replace(const JsonFields& fields) : content_(fields.get<std::string>("content")) {
    pattern_ = read_text_pattern(fields);
  }
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      if (std::optional<std::string> result = pattern_->replaced(token, content_)) {
        token = *std::move(result);
      }
    }
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

// Marks at the ends of words become spaces, except the last.
class WordEnds : public Decoder {
 public:
  explicit WordEnds(const JsonFields& fields)
      : suffix_(fields.find<std::string>("suffix").value_or("</w>")) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

class Ctc : public Decoder {
 public:
  explicit Ctc(const JsonFields& fields)
      : pad_(fields.find<std::string>("pad_token").value_or("<pad>")),
        delimiter_(fields.find<std::string>("word_delimiter_token").value_or("|")),
        cleanup_(fields.find<bool>("cleanup").value_or(true)) {}
  void apply(Tokens& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (cleanup_) {
        clean_up(token);
        replace_all(token, delimiter_, " ");
      }
    }
    std::erase(tokens, std::string());
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

}  // namespace

std::string byte_level_bytes(const std::string& token) {
  return unspell_bytes(token).value_or(token);
}

std::unique_ptr<Decoder> read_decoder(const JsonFields& object) {
  const std::string type = object.get<std::string>("type");
  const JsonFields fields = object.named("decoder " + type);
  if (type == "Sequence") return std::make_unique<Sequence>(fields);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Metaspace") return std::make_unique<Metaspace>(fields);
  if (type == "WordPiece") return std::make_unique<WordPiece>(fields);
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<Strip>(fields);
  if (type == "Replace") return std::make_unique<Replace>(fields);
  if (type == "BPEDecoder") return std::make_unique<WordEnds>(fields);
  if (type == "CTC") return std::make_unique<Ctc>(fields);
  throw Error(concat("decoder of type '", type, "' is not known"));
}

}  // namespace bloomery::hf
