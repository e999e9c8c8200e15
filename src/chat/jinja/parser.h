// Tokens to trees, by Jinja's grammar.
#pragma once

#include "chat/jinja/ast.h"
#include "chat/jinja/token_stream.h"

namespace bloomery::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr expression(bool conditional = true);  // `a if b else c` among them if conditional
  // Several, divided by commas, are a tuple.
  ExpressionPtr tuple(bool conditional = true, bool parenthesized = false);
  ExpressionPtr chain_of_filters(ExpressionPtr input);  // a | b | c without the first |
  ArgumentList arguments();                             // ( ... )
  ExpressionPtr unary(bool with_filters = true);
  Target target();  // of a for, or of a set

 private:
  ExpressionPtr conditional();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr binary(std::size_t level);
  ExpressionPtr primary();
  ExpressionPtr named_constant();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr filters(ExpressionPtr input);
  ExpressionPtr filter(ExpressionPtr input);
  ExpressionPtr test(ExpressionPtr input);
  Target single_target();
  bool ends_tuple() const;

  TokenStream& tokens_;
  int depth_ = 0;
};

// An Error names the line.
Body parse(std::string_view source);

}  // namespace bloomery::jinja
