#include "tokenizer/hf/precompiled.h"

#include <array>

#include "tokenizer/base64.h"
#include "tokenizer/hf/graphemes.h"
#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

// Bytes of the longest cluster that is looked up as a whole.
constexpr std::size_t kLongestCluster = 5;

std::string charsmap_blob(const JsonFields& fields) {
  std::string blob;
  if (!append_base64(fields.get<std::string>("precompiled_charsmap"), blob)) {
    fields.fail("precompiled_charsmap", "base64");
  }
  return blob;
}

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const JsonFields& fields)
      : charsmap_(charsmap_blob(fields), fields.place()) {
    for (std::size_t i = 0; i < ascii_kept_.size(); ++i) {
      const char c = static_cast<char>(i);
      ascii_kept_[i] = charsmap_.shortest(std::string_view(&c, 1)).length == 0;
    }
  }

  void apply(Stretch& stretch) const override {
    const std::string_view text = stretch.text;
    std::string result;
    result.reserve(text.size() + text.size() / 8);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t plain = plain_end(text, at);
      result.append(text, at, plain - at);
      if (plain == text.size()) break;
      at = grapheme_end(text, plain);
      append_cluster(text.substr(plain, at - plain), result);
    }
    stretch.text = std::move(result);
  }

  bool leaves(std::string_view text) const override { return plain_end(text, 0) == text.size(); }

 private:
  // The end of the ASCII characters from `at` on that no rule touches and no accent follows.
  std::size_t plain_end(std::string_view text, std::size_t at) const {
    const auto is_ascii = [&](std::size_t i) {
      return i == text.size() || static_cast<signed char>(text[i]) >= 0;
    };
    while (at < text.size() && is_ascii(at) && is_ascii(at + 1) &&
           ascii_kept_[static_cast<unsigned char>(text[at])]) {
      ++at;
    }
    return at;
  }

  void append_cluster(std::string_view cluster, std::string& result) const {
    if (cluster.size() <= kLongestCluster) {
      const Charsmap::Rule rule = charsmap_.shortest(cluster);
      if (rule.length > 0) {
        result += rule.replacement;
        return;
      }
    }
    for (std::size_t at = 0; at < cluster.size();) {
      const auto length = static_cast<std::size_t>(utf8_at(cluster, at).length);
      const std::string_view character = cluster.substr(at, length);
      const Charsmap::Rule rule = charsmap_.shortest(character);
      result += rule.length > 0 ? rule.replacement : character;
      at += length;
    }
  }

  Charsmap charsmap_;
  std::array<bool, 128> ascii_kept_{};
};

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(const JsonFields& fields) {
  return std::make_unique<Precompiled>(fields);
}

}  // namespace bloomery::hf
