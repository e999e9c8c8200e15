#include "tokenizer/hf/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/hf/char_classes.h"
#include "tokenizer/hf/filter.h"

namespace bloomery::hf {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = text.size() - 1;
  while ((byte_at(text, at) & 0xC0) == 0x80) --at;
  return is_word(utf8_at(text, at).code);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(utf8_at(text, 0).code);
}

AddedToken read_token(const JsonFields& fields) {
  AddedToken token;
  token.content = fields.get<std::string>("content");
  token.single_word = fields.find<bool>("single_word").value_or(false);
  token.lstrip = fields.find<bool>("lstrip").value_or(false);
  token.rstrip = fields.find<bool>("rstrip").value_or(false);
  token.special = fields.find<bool>("special").value_or(false);
  token.normalized = fields.find<bool>("normalized").value_or(!token.special);
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<JsonFields>& objects, const Model& model,
                         const Normalizer* normalizer, bool has_ids) {
  auto next_id = static_cast<TokenId>(model.size());
  for (const JsonFields& object : objects) {
    AddedToken token = read_token(object);
    if (token.content.empty()) continue;
    const auto known = by_content_.find(token.content);
    if (known != by_content_.end()) {
      token.id = tokens_[known->second].id;
    } else {
      const std::optional<TokenId> of_model = model.find(token.content);
      token.id = of_model ? *of_model : has_ids ? object.get<TokenId>("id") : next_id++;
    }
    token.pattern = token.content;
    if (token.normalized && normalizer != nullptr) {
      Stretch stretch{token.content, true};
      normalizer->apply(stretch);
      token.pattern = std::move(stretch.text);
      check(!token.pattern.empty(), "added_tokens: nothing is left of '", token.content,
            "' when it is normalised");
    }
    const std::size_t place = known != by_content_.end() ? known->second : tokens_.size();
    by_content_[token.content] = place;
    by_id_[token.id] = place;
    end_id_ = std::max(end_id_, token.id + 1);
    if (place == tokens_.size()) tokens_.emplace_back();
    tokens_[place] = std::move(token);
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (by_id_[tokens_[i].id] == i) matchers_[tokens_[i].normalized].add(tokens_[i].pattern, i);
  }
}

void AddedTokens::split(std::string_view text, bool normalized, bool parse_special,
                        std::vector<Part>& parts) const {
  const TokenMatcher& matcher = matchers_[normalized];
  std::size_t done = 0;
  TokenMatcher::Found found{0, 0, 0};
  while (!matcher.empty() && (found = matcher.find(text, found.end)).begin < text.size()) {
    const AddedToken& token = tokens_[found.token];
    if (token.special && !parse_special) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, found.begin)) || starts_with_word(text.substr(found.end)))) {
      continue;
    }
    std::size_t begin = found.begin, end = found.end;
    if (token.lstrip) begin = std::max(space_begin(text.substr(0, begin)), done);
    if (token.rstrip) end += space_end(text.substr(end));
    if (done < begin) parts.push_back({done, begin, nullptr});
    parts.push_back({begin, end, &token});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), nullptr});
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace bloomery::hf
