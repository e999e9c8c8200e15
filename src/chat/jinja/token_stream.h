// The tokens of a template, one after another, for its parsers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chat/jinja/lexer.h"

namespace bloomery::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  int line() const { return peek().line; }
  bool at(Token::Type type) const { return peek().type == type; }
  bool at_name(std::string_view name) const {
    return at(Token::Type::name) && peek().value == name;
  }
  bool at_sign(std::string_view sign) const {
    return at(Token::Type::sign) && peek().value == sign;
  }

  Token take() {
    Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_name(std::string_view name) { return at_name(name) && (take(), true); }
  bool skip_sign(std::string_view sign) { return at_sign(sign) && (take(), true); }
  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) fail(concat("'", sign, "'"));
  }
  std::string expect_name() {
    if (!at(Token::Type::name)) fail("a name");
    return take().value;
  }
  void expect(Token::Type type, std::string_view what) {
    if (!at(type)) fail(what);
    take();
  }
  [[noreturn]] void fail(std::string_view wanted) const {
    const Token& token = peek();
    const bool end = token.type == Token::Type::end;
    throw Error(concat("line ", token.line, ": expected ", wanted, " before ",
                       end                                       ? "the end of the template"
                       : token.type == Token::Type::variable_end ? "'}}'"
                       : token.type == Token::Type::block_end    ? "'%}'"
                                                                 : concat("'", token.value, "'")));
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace bloomery::jinja
