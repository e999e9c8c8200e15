#include "tokenizer/tokenizer_hash.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/load.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::string_view kPage =
    "The quick brown fox jumps over the lazy dog; THE QUICK BROWN FOX, The Quick Brown Fox.\n"
    "It's 3.14159 or 1,234,567 -- isn't it? don't we'll they've I'm you'd\r\n\r\n"
    "\tfor (int i = 0; i < 100; ++i) {\n        x[i] += f(i) * 2;\n    }\n"
    "Fran\u00e7ais na\u00efve \u0130stanbul Stra\u00dfe e\u0301 \ufb01n \u212b \u00bd  two  spaces "
    "  three\n"
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0442\u0435\u043a\u0441\u0442 "
    "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac "
    "\u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629 "
    "\u0939\u093f\u0928\u094d\u0926\u0940\n"
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \u4e2d\u6587\u6587\u672c \ud55c\uad6d\uc5b4 "
    "\U0001F642\U0001F1E9\U0001F1EA\u200d\u00a0\n";

// Pieces that stand for single bytes are no text, and the longest ones say nothing more.
bool is_text(std::string_view piece) {
  constexpr std::size_t kLongest = 64;
  return !piece.empty() && piece.size() <= kLongest && is_utf8(piece);
}

}  // namespace

std::string tokenizer_name(const TokenizerOptions& options) {
  if (!options.path.empty() || options.type == "NullTokenizer") return options.path;
  const std::string& file =
      options.tokenizer_model.empty() ? options.vocab_file : options.tokenizer_model;
  return file.empty() ? options.type : concat(options.type, " ", file);
}

std::string tokenizer_hash(const Tokenizer& tokenizer, std::int64_t num_ids) {
  std::string pieces, text(kPage);
  for (TokenId id = 0; id < std::min(num_ids, tokenizer.vocab_size()); ++id) {
    const std::string piece = tokenizer.piece(id);
    pieces.append(piece).push_back('\0');
    if (is_text(piece)) text.append(piece).push_back(' ');
  }
  std::vector<TokenId> ids;
  try {
    tokenizer.make_encoder({.add_special_tokens = false, .parse_special = false})
        ->encode(text, ids);
  } catch (const Error&) {  // it has no id for some of them: then its vocabulary has to tell
    ids.clear();
  }
  const auto bytes = std::as_bytes(std::span(ids));
  return hash_text(xxh3(concat(hash_text(xxh3(pieces)), hash_text(xxh3(bytes)))));
}

}  // namespace bloomery
