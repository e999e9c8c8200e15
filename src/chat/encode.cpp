#include "chat/encode.h"

#include "base/error.h"
#include "tokenizer/stream_decoder.h"

namespace bloomery {
namespace {

std::vector<TokenId> encoded(Encoder& encoder, std::string_view text) {
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  return ids;
}

// The end in the decoded text of what each token says; of a character that takes several tokens,
// its end for all of them.
std::vector<std::size_t> token_ends(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                                    std::string& decoded) {
  StreamDecoder decoder(tokenizer);
  std::vector<std::size_t> ends;
  for (const TokenId id : ids) {
    decoded += decoder.push(id);
    ends.push_back(decoded.size());
  }
  decoded += decoder.finish();
  std::size_t end = decoded.size();
  for (std::size_t i = ends.size(); i-- > 0;) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    if (ends[i] > begin) end = ends[i];
    ends[i] = end;
    if (i + 1 == ids.size()) end = ends[i] = decoded.size();
  }
  return ends;
}

bool any_mark(const jinja::Text& text, std::size_t begin, std::size_t end, char mark) {
  for (std::size_t i = begin; i < end; ++i) {
    if ((text.mark(i) & mark) != 0) return true;
  }
  return false;
}

}  // namespace

MarkedEncoder::MarkedEncoder(const Tokenizer& tokenizer, bool add_special_tokens)
    : tokenizer_(tokenizer),
      whole_(tokenizer.make_encoder({.add_special_tokens = add_special_tokens})),
      special_(tokenizer.make_encoder({})),
      plain_(tokenizer.make_encoder({.parse_special = false})) {}

std::vector<TokenId> MarkedEncoder::encode_plain(std::string_view text) {
  return encoded(*special_, text);
}

bool MarkedEncoder::spells_special(std::string_view text) {
  return encoded(*special_, text) != encoded(*plain_, text);
}

std::vector<TokenId> MarkedEncoder::ids_of(const jinja::Text& text) {
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
  MarkedTokens tokens{ids_of(text), {}};
  tokens.generated.assign(tokens.ids.size(), 0);
  if (!any_mark(text, 0, text.size(), jinja::kGenerated)) return tokens;
  std::string decoded;
  const std::vector<std::size_t> ends = token_ends(tokenizer_, tokens.ids, decoded);
  // Tokens around the text come before it; some tokenizers drop a space at its start.
  const std::size_t skipped =
      text.bytes().starts_with(' ') && decoded.find(text.bytes()) == std::string::npos ? 1 : 0;
  const std::size_t first = decoded.find(std::string_view(text.bytes()).substr(skipped));
  check(first != std::string::npos,
        "this tokenizer does not give back the text that it encodes, so that no place in it can be "
        "found among the tokens: "
        "say with --response-template where answers begin");
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::size_t before = i;
    while (before > 0 && ends[before - 1] == ends[i]) --before;  // parts of one character
    const std::size_t begin = before == 0 ? 0 : ends[before - 1];
    if (ends[i] <= first || begin >= first + text.size() - skipped) continue;
    const std::size_t from = std::max(begin, first) - first + skipped,
                      to = std::min(ends[i] - first + skipped, text.size());
    tokens.generated[i] = any_mark(text, from, to, jinja::kGenerated) ? 1 : 0;
  }
  return tokens;
}

}  // namespace bloomery
