#include "tokenizer/hf/bert_normalizer.h"

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertTextOptions& options) : options_(options) {}

  void apply(Stretch& stretch) const override {
    if (stretch.at_start && !stretch.text.empty()) {
      const char32_t first = utf8_at(stretch.text, 0).code;
      stretch.at_start = !(options_.clean_text && is_bert_control(first)) &&
                         !(options_.strip_accents && is_bert_accent(first));
    }
    bert_normalize(stretch.text, options_);
  }

 private:
  BertTextOptions options_;
};

}  // namespace

BertTextOptions read_bert_options(const JsonFields& fields) {
  BertTextOptions options;
  options.clean_text = fields.get<bool>("clean_text");
  options.set_ideographs_apart = fields.get<bool>("handle_chinese_chars");
  options.lowercase = fields.get<bool>("lowercase");
  options.strip_accents = fields.find<bool>("strip_accents").value_or(options.lowercase);
  return options;
}

std::unique_ptr<Normalizer> read_bert_normalizer(const JsonFields& fields) {
  return std::make_unique<BertNormalizer>(read_bert_options(fields));
}

}  // namespace bloomery::hf
