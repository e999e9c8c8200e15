#include "tokenizer/hf/bert_normalizer.h"

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/hf/filter.h"
#include "tokenizer/unicode/normalize.h"

namespace bloomery::hf {
namespace {

char32_t cleaned(char32_t code) {
  if (is_bert_control(code)) return kRemoved;
  return is_space(code) ? U' ' : code;
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const Fields& fields)
      : clean_(fields.flag("clean_text")),
        ideographs_(fields.flag("handle_chinese_chars")),
        lowercase_(fields.flag("lowercase")),
        accents_(fields.flag_or("strip_accents", lowercase_)) {}

  void apply(Stretch& stretch) const override {
    if (clean_) filter(stretch, cleaned);
    if (ideographs_) set_ideographs_apart(stretch.text);
    if (accents_) {
      normalize(stretch.text, NormalForm::nfd);
      filter(stretch, [](char32_t code) { return is_bert_accent(code) ? kRemoved : code; });
    }
    if (lowercase_) lowercase(stretch.text);
  }

 private:
  static void set_ideographs_apart(std::string& text) {
    std::string result;
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char next = utf8_at(text, at);
      const std::size_t end = at + static_cast<std::size_t>(next.length);
      if (is_bert_ideograph(next.code)) {
        result.append(text, done, at - done);
        result += ' ';
        result.append(text, at, end - at);
        result += ' ';
        done = end;
      }
      at = end;
    }
    if (done == 0) return;
    result.append(text, done);
    text = std::move(result);
  }

  bool clean_, ideographs_, lowercase_, accents_;
};

}  // namespace

std::unique_ptr<Normalizer> read_bert_normalizer(const Fields& fields) {
  return std::make_unique<BertNormalizer>(fields);
}

}  // namespace bloomery::hf
