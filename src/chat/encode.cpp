#include "chat/encode.h"

#include "chat/record.h"
#include "tokenizer/token_spans.h"

namespace bloomery {
namespace {

std::vector<TokenId> encoded(Encoder& encoder, std::string_view text) {
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  return ids;
}

bool any_mark(const jinja::Text& text, std::size_t begin, std::size_t end, char mark) {
  for (std::size_t i = begin; i < end; ++i) {
    if ((text.mark(i) & mark) != 0) return true;
  }
  return false;
}

EncodeOptions around(bool add_special_tokens) {
  return {.add_special_tokens = add_special_tokens, .parse_control = true, .is_prompt = true};
}

}  // namespace

MarkedEncoder::MarkedEncoder(const Tokenizer& tokenizer, bool add_special_tokens)
    : tokenizer_(tokenizer),
      whole_(tokenizer.make_encoder(around(add_special_tokens))),
      special_(tokenizer.make_encoder(around(false))),
      plain_(tokenizer.make_encoder({.parse_special = false})) {}

std::vector<TokenId> MarkedEncoder::encode_plain(std::string_view text) {
  return encoded(*special_, text);
}

bool MarkedEncoder::spells_special(std::string_view text) {
  return encoded(*special_, text) != encoded(*plain_, text);
}

std::vector<TokenId> MarkedEncoder::ids(const jinja::Text& text) {
  std::vector<TokenId> ids;
  std::size_t done = 0;  // bytes that are encoded
  for (std::size_t begin = 0; begin < text.size();) {
    const bool input = (text.mark(begin) & jinja::kFromInput) != 0;
    std::size_t end = begin;
    while (end < text.size() && ((text.mark(end) & jinja::kFromInput) != 0) == input) ++end;
    const std::string_view run = std::string_view(text.bytes()).substr(begin, end - begin);
    if (input && spells_special(run)) {
      special_->encode(std::string_view(text.bytes()).substr(done, begin - done), ids);
      plain_->encode(run, ids);
      done = end;
    }
    begin = end;
  }
  if (done == 0) return encoded(*whole_, text.bytes());
  special_->encode(std::string_view(text.bytes()).substr(done), ids);
  return ids;
}

MarkedTokens MarkedEncoder::encode(const jinja::Text& text) {
  MarkedTokens tokens{ids(text), {}};
  tokens.generated.assign(tokens.ids.size(), 0);
  if (!any_mark(text, 0, text.size(), jinja::kGenerated)) return tokens;
  const auto spans = token_spans(tokenizer_, tokens.ids, text.bytes());
  if (!spans) {
    throw UnmaskableRecord(
        "the tokens decode to a different text, so that the answers among them cannot be found");
  }
  for (std::size_t i = 0; i < spans->size(); ++i) {
    const auto [begin, end] = (*spans)[i];
    tokens.generated[i] = any_mark(text, begin, end, jinja::kGenerated) ? 1 : 0;
  }
  return tokens;
}

}  // namespace bloomery
