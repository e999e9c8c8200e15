// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value.h"

namespace bloomery::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  // *x and **x; null: none
};

struct Constant {
  Value value;
};
struct Variable {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
  bool tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object, start, stop, step;  // the last three may be null
};
struct Call {
  ExpressionPtr callee;
  ArgumentList arguments;
};
struct Filter {
  ExpressionPtr input;  // null: the text of a block
  std::string name;
  ArgumentList arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  ArgumentList arguments;
};
struct Unary {
  char sign;  // + - or ! for not
  ExpressionPtr operand;
};
struct Binary {
  std::string sign;  // + - * / // % ** ~ and or
  ExpressionPtr left, right;
};
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<std::string, ExpressionPtr>> rest;  // == != < <= > >= in, not in
};
struct Conditional {
  ExpressionPtr condition, then, otherwise;  // the last may be null
};

struct Expression {
  std::variant<Constant, Variable, ListLiteral, DictLiteral, Attribute, Subscript, Slice, Call,
               Filter, Test, Unary, Binary, Comparison, Conditional>
      node;
  int line = 0;
  int depth = 1;  // of the tree below
};

// What is assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name, attribute;
  std::vector<Target> items;
};

struct Statement;
using Body = std::vector<Statement>;

struct PlainText {
  std::string text;
};
struct Output {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr items, condition;  // the latter may be null
  Body body, otherwise;
  bool recursive = false;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // of the block's text; null: none
  Body body;
};
struct Parameters {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;  // of the last ones
};
struct MacroDefinition {
  std::string name;
  Parameters parameters;
  Body body;
};
struct CallBlock {
  ExpressionPtr call;
  MacroDefinition caller;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Body body;
};
struct Generation {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  std::variant<PlainText, Output, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock,
               With, Generation, Break, Continue>
      node;
  int line = 0;
};

// Trees nest at most this deep.
inline constexpr int kMaxTreeDepth = 150;

// An Error where the tree becomes too deep.
ExpressionPtr make_expression(decltype(Expression::node) node, int line);

}  // namespace bloomery::jinja
