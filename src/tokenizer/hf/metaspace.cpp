#include "tokenizer/hf/metaspace.h"

#include "base/error.h"
#include "tokenizer/hf/splitting.h"
#include "tokenizer/word_mark.h"

namespace bloomery::hf {
namespace {

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(const JsonFields& fields)
      : scheme_(read_prepend_scheme(fields)), split_(fields.find<bool>("split").value_or(true)) {
    append_utf8(mark_, read_character(fields, "replacement"));
  }

  void apply(Pieces& pieces) const override {
    if (pieces.byte_level) pieces.spell_out();
    pieces.rewrite([&](const Piece& piece, std::string_view text, std::string& result) {
      const bool wanted =
          scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && piece.at_start);
      if (wanted && !text.starts_with(mark_) && !text.starts_with(' ')) result += mark_;
      append_replacing(text, ' ', mark_, result);
    });
    if (split_) split(pieces);
  }

 private:
  void split(Pieces& pieces) const {
    std::vector<Piece> result;
    for (const Piece& piece : pieces.list) {
      const std::string_view text = pieces.at(piece);
      std::size_t begin = 0;
      while (begin < text.size()) {
        const std::size_t end = std::min(text.find(mark_, begin + 1), text.size());
        result.push_back({piece.begin + begin, piece.begin + end, piece.at_start && begin == 0});
        begin = end;
      }
    }
    pieces.list = std::move(result);
  }

  PrependScheme scheme_;
  bool split_;
  std::string mark_;
};

}  // namespace

PrependScheme read_prepend_scheme(const JsonFields& fields) {
  const std::string name = fields.find<std::string>("prepend_scheme").value_or("always");
  const bool prefix = fields.find<bool>("add_prefix_space").value_or(true);
  if (name == "never" || (!prefix && !fields.has("prepend_scheme"))) {
    return PrependScheme::never;
  }
  check(prefix, fields.place(), ": add_prefix_space is false but prepend_scheme is '", name, "'");
  if (name == "first") return PrependScheme::first;
  if (name != "always") fields.fail("prepend_scheme", "always, first or never");
  return PrependScheme::always;
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonFields& fields) {
  return std::make_unique<Metaspace>(fields);
}

}  // namespace bloomery::hf
