#include "tokenizer/hf/normalizer.h"

#include <functional>
#include <vector>

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/hf/bert_normalizer.h"
#include "tokenizer/hf/char_classes.h"
#include "tokenizer/hf/filter.h"
#include "tokenizer/hf/precompiled.h"
#include "tokenizer/hf/text_pattern.h"
#include "tokenizer/unicode/normalize.h"

namespace bloomery::hf {
namespace {

class Sequence : public Normalizer {
 public:
  explicit Sequence(const JsonFields& fields) {
    for (const JsonFields& object : fields.get<std::vector<JsonFields>>("normalizers")) {
      parts_.push_back(read_normalizer(object));
    }
  }
  void apply(Stretch& stretch) const override {
    for (const auto& part : parts_) part->apply(stretch);
  }
  bool leaves(std::string_view text) const override {
    for (const auto& part : parts_) {
      if (!part->leaves(text)) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class Form : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(Stretch& stretch) const override { normalize(stretch.text, form_); }
  bool leaves(std::string_view text) const override {
    return normalized_prefix(text, form_) == text.size();
  }

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 public:
  void apply(Stretch& stretch) const override { lowercase(stretch.text); }
};

class StripAccents : public Normalizer {
 public:
  void apply(Stretch& stretch) const override {
    filter(stretch, [](char32_t code) { return is_combining_mark(code) ? kRemoved : code; });
  }
};

class Strip : public Normalizer {
 public:
  explicit Strip(const JsonFields& fields)
      : left_(fields.get<bool>("strip_left")), right_(fields.get<bool>("strip_right")) {}

  void apply(Stretch& stretch) const override {
    std::string& text = stretch.text;
    if (right_) text.resize(space_begin(text));
    const std::size_t leading = left_ ? space_end(text) : 0;
    if (leading > 0) {
      text.erase(0, leading);
      stretch.at_start = false;
    }
  }

 private:
  bool left_, right_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(const JsonFields& fields) : content_(fields.get<std::string>("content")) {
    pattern_ = read_text_pattern(fields);
  }

  void apply(Stretch& stretch) const override {
    std::optional<std::string> result = pattern_->replaced(stretch.text, content_);
    if (!result) return;
    // What replaces several characters stands where the last of them stood.
    std::vector<Match> matches;
    if (stretch.at_start) pattern_->find_all(stretch.text, matches);
    if (!matches.empty() && matches[0].begin == 0 &&
        (content_.empty() || count_characters(stretch.text, matches[0]) > 1)) {
      stretch.at_start = false;
    }
    stretch.text = *std::move(result);
  }
  bool leaves(std::string_view text) const override {
    std::vector<Match> matches;
    pattern_->find_all(text, matches);
    return matches.empty();
  }

 private:
  static std::size_t count_characters(std::string_view text, Match match) {
    std::size_t count = 0;
    for (std::size_t i = match.begin; i < match.end; ++i) {
      count += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    }
    return count;
  }

  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(const JsonFields& fields) : prepend_(fields.get<std::string>("prepend")) {}
  void apply(Stretch& stretch) const override {
    if (!stretch.text.empty()) stretch.text.insert(0, prepend_);
  }

 private:
  std::string prepend_;
};

// What SentencePiece's nmt rules do to control characters and odd spaces.
class Nmt : public Normalizer {
 public:
  void apply(Stretch& stretch) const override { filter(stretch, cleaned); }

 private:
  static char32_t cleaned(char32_t code) {
    const bool removed = (code >= 0x01 && code <= 0x08) || code == 0x0B ||
                         (code >= 0x0E && code <= 0x1F) || code == 0x7F || code == 0x8F ||
                         code == 0x9F;
    if (removed) return kRemoved;
    const bool space = code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D ||
                       code == 0x1680 || (code >= 0x200B && code <= 0x200F) || code == 0x2028 ||
                       code == 0x2029 || code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
    return space ? U' ' : code;
  }
};

class ByteLevel : public Normalizer {
 public:
  void apply(Stretch& stretch) const override { stretch.text = spell_bytes(stretch.text); }
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const JsonFields& object) {
  const std::string type = object.get<std::string>("type");
  const JsonFields named = object.named("normalizer " + type);
  if (type == "Sequence") return std::make_unique<Sequence>(named);
  if (type == "NFC") return std::make_unique<Form>(NormalForm::nfc);
  if (type == "NFD") return std::make_unique<Form>(NormalForm::nfd);
  if (type == "NFKC") return std::make_unique<Form>(NormalForm::nfkc);
  if (type == "NFKD") return std::make_unique<Form>(NormalForm::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip" || type == "StripNormalizer") return std::make_unique<Strip>(named);
  if (type == "Replace") return std::make_unique<Replace>(named);
  if (type == "Prepend") return std::make_unique<Prepend>(named);
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Precompiled") return read_precompiled(named);
  if (type == "BertNormalizer") return read_bert_normalizer(named);
  throw Error(concat("normalizer of type '", type, "' is not known"));
}

}  // namespace bloomery::hf
