#include <array>
#include <charconv>

#include "chat/jinja/parser.h"

namespace bloomery::jinja {
namespace {

using Type = Token::Type;

// Counts how deep parsing functions call each other.
class Nesting {
 public:
  Nesting(int& depth, int line) : depth_(depth) {
    check(++depth_ <= kMaxTreeDepth, "line ", line, ": expressions nest more than ", kMaxTreeDepth,
          " deep");
  }
  ~Nesting() { --depth_; }

 private:
  int& depth_;
};

Value integer(const Token& token) {
  std::string_view digits = token.value;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && !(digits[1] >= '0' && digits[1] <= '9')) {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' || digits[1] == 'O' ? 8 : 2;
    digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  check(read.ec == std::errc() && read.ptr == digits.data() + digits.size(), "line ", token.line,
        ": ", token.value, " is no number of 64 bits");
  return value;
}

}  // namespace

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  const Nesting nesting(depth_, tokens_.line());
  return with_condition ? conditional() : either();
}

ExpressionPtr ExpressionParser::conditional() {
  ExpressionPtr value = either();
  while (tokens_.at_name("if")) {
    const int line = tokens_.take().line;
    Conditional node{.condition = either(), .then = std::move(value), .otherwise = nullptr};
    if (tokens_.skip_name("else")) node.otherwise = expression();
    value = make_expression(std::move(node), line);
  }
  return value;
}

ExpressionPtr ExpressionParser::either() {
  ExpressionPtr left = both();
  while (tokens_.at_name("or")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = both();
    left = make_expression(Binary{"or", std::move(left), std::move(right)}, line);
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  ExpressionPtr left = negation();
  while (tokens_.at_name("and")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = negation();
    left = make_expression(Binary{"and", std::move(left), std::move(right)}, line);
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const Nesting nesting(depth_, tokens_.line());
  if (!tokens_.at_name("not")) return comparison();
  const int line = tokens_.take().line;
  return make_expression(Unary{'!', negation()}, line);
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.line();
  Comparison node{.first = binary(0), .rest = {}};
  for (;;) {
    std::string sign;
    if (tokens_.at(Type::sign)) {
      for (const char* known : {"==", "!=", "<", "<=", ">", ">="}) {
        if (tokens_.peek().value == known) sign = known;
      }
    }
    if (!sign.empty() || tokens_.at_name("in")) {
      sign = tokens_.take().value;
    } else if (tokens_.at_name("not") && tokens_.peek(1).type == Type::name &&
               tokens_.peek(1).value == "in") {
      tokens_.take();
      tokens_.take();
      sign = "not in";
    } else {
      break;
    }
    ExpressionPtr right = binary(0);
    node.rest.emplace_back(sign, std::move(right));
  }
  return node.rest.empty() ? std::move(node.first) : make_expression(std::move(node), line);
}

// Signs that bind tighter come later.
ExpressionPtr ExpressionParser::binary(std::size_t level) {
  static const std::array<std::vector<std::string>, 4> kLevels = {
      {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}};
  if (level == kLevels.size()) return unary();
  ExpressionPtr left = binary(level + 1);
  const auto is_of_level = [&] {
    for (const std::string& sign : kLevels[level]) {
      if (tokens_.at_sign(sign)) return true;
    }
    return false;
  };
  while (is_of_level()) {
    const Token sign = tokens_.take();
    ExpressionPtr right = binary(level + 1);
    left = make_expression(Binary{sign.value, std::move(left), std::move(right)}, sign.line);
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(depth_, tokens_.line());
  ExpressionPtr value;
  if (tokens_.at_sign("-") || tokens_.at_sign("+")) {
    const Token sign = tokens_.take();
    value = make_expression(Unary{sign.value[0], unary(false)}, sign.line);
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::named_constant() {
  const Token token = tokens_.take();
  const std::string& name = token.value;
  if (name == "true" || name == "True") return make_expression(Constant{true}, token.line);
  if (name == "false" || name == "False") return make_expression(Constant{false}, token.line);
  if (name == "none" || name == "None") return make_expression(Constant{Value::none()}, token.line);
  return make_expression(Variable{name}, token.line);
}

ExpressionPtr ExpressionParser::primary() {
  const int line = tokens_.line();
  if (tokens_.at(Type::name)) return named_constant();
  if (tokens_.at(Type::text)) {
    std::string text;
    while (tokens_.at(Type::text)) text += tokens_.take().value;
    return make_expression(Constant{Text(text)}, line);
  }
  if (tokens_.at(Type::integer)) return make_expression(Constant{integer(tokens_.take())}, line);
  if (tokens_.at(Type::real)) {
    return make_expression(Constant{std::stod(tokens_.take().value)}, line);
  }
  if (tokens_.skip_sign("(")) {
    ExpressionPtr inside = tuple(true, true);
    tokens_.expect_sign(")");
    return inside;
  }
  if (tokens_.at_sign("[")) return list();
  if (tokens_.at_sign("{")) return dict();
  tokens_.fail("a value");
}

bool ExpressionParser::ends_tuple() const {
  return tokens_.at(Type::variable_end) || tokens_.at(Type::block_end) || tokens_.at(Type::end) ||
         tokens_.at_sign(")");
}

ExpressionPtr ExpressionParser::tuple(bool conditional, bool parenthesized) {
  const int line = tokens_.line();
  ListLiteral node{.items = {}, .tuple = true};
  bool comma = false;
  while (!ends_tuple()) {
    node.items.push_back(expression(conditional));
    comma = tokens_.skip_sign(",");
    if (!comma) break;
  }
  if (node.items.size() == 1 && !comma) return std::move(node.items[0]);
  if (node.items.empty() && !parenthesized) tokens_.fail("a value");
  return make_expression(std::move(node), line);
}

ExpressionPtr ExpressionParser::list() {
  const int line = tokens_.take().line;
  ListLiteral node;
  while (!tokens_.at_sign("]")) {
    if (!node.items.empty()) tokens_.expect_sign(",");
    if (tokens_.at_sign("]")) break;
    node.items.push_back(expression());
  }
  tokens_.expect_sign("]");
  return make_expression(std::move(node), line);
}

ExpressionPtr ExpressionParser::dict() {
  const int line = tokens_.take().line;
  DictLiteral node;
  while (!tokens_.at_sign("}")) {
    if (!node.items.empty()) tokens_.expect_sign(",");
    if (tokens_.at_sign("}")) break;
    ExpressionPtr key = expression();
    tokens_.expect_sign(":");
    node.items.emplace_back(std::move(key), expression());
  }
  tokens_.expect_sign("}");
  return make_expression(std::move(node), line);
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr object) {
  for (;;) {
    const int line = tokens_.line();
    if (tokens_.skip_sign(".")) {
      if (tokens_.at(Type::integer)) {
        ExpressionPtr index = make_expression(Constant{integer(tokens_.take())}, line);
        object = make_expression(Subscript{std::move(object), std::move(index)}, line);
      } else {
        object = make_expression(Attribute{std::move(object), tokens_.expect_name()}, line);
      }
    } else if (tokens_.skip_sign("[")) {
      object = subscript(std::move(object));
    } else if (tokens_.at_sign("(")) {
      object = make_expression(Call{std::move(object), arguments()}, line);
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const int line = tokens_.line();
  std::array<ExpressionPtr, 3> parts;
  std::size_t colons = 0;
  while (!tokens_.at_sign("]")) {
    if (tokens_.skip_sign(":")) {
      if (++colons == parts.size()) tokens_.fail("']'");
    } else if (parts[colons] == nullptr) {
      parts[colons] = expression();
    } else {
      tokens_.fail("']'");
    }
  }
  tokens_.take();
  if (colons > 0) {
    return make_expression(
        Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])},
        line);
  }
  if (parts[0] == nullptr) tokens_.fail("a value");
  return make_expression(Subscript{std::move(object), std::move(parts[0])}, line);
}

ArgumentList ExpressionParser::arguments() {
  tokens_.expect_sign("(");
  ArgumentList list;
  for (bool first = true; !tokens_.at_sign(")"); first = false) {
    if (!first) tokens_.expect_sign(",");
    if (tokens_.at_sign(")")) break;
    if (tokens_.skip_sign("*")) {
      list.more_positional = expression();
    } else if (tokens_.skip_sign("**")) {
      list.more_named = expression();
    } else if (tokens_.at(Type::name) && tokens_.peek(1).type == Type::sign &&
               tokens_.peek(1).value == "=") {
      std::string name = tokens_.take().value;
      tokens_.take();
      list.named.emplace_back(std::move(name), expression());
    } else {
      if (!list.named.empty()) tokens_.fail("a named argument");
      list.positional.push_back(expression());
    }
  }
  tokens_.expect_sign(")");
  return list;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr input) {
  for (;;) {
    const int line = tokens_.line();
    if (tokens_.skip_sign("|")) {
      input = filter(std::move(input));
    } else if (tokens_.skip_name("is")) {
      input = test(std::move(input));
    } else if (tokens_.at_sign("(")) {
      input = make_expression(Call{std::move(input), arguments()}, line);
    } else {
      return input;
    }
  }
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr input) {
  const int line = tokens_.line();
  std::string name = tokens_.expect_name();
  while (tokens_.skip_sign(".")) name += "." + tokens_.expect_name();
  ArgumentList list = tokens_.at_sign("(") ? arguments() : ArgumentList();
  return make_expression(Filter{std::move(input), std::move(name), std::move(list)}, line);
}

ExpressionPtr ExpressionParser::chain_of_filters(ExpressionPtr input) {
  do {
    input = filter(std::move(input));
  } while (tokens_.skip_sign("|"));
  return input;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr input) {
  const int line = tokens_.line();
  const bool negated = tokens_.skip_name("not");
  Test node{.input = std::move(input), .name = tokens_.expect_name(), .arguments = {}};
  const bool value_follows = tokens_.at(Type::name) || tokens_.at(Type::text) ||
                             tokens_.at(Type::integer) || tokens_.at(Type::real) ||
                             tokens_.at_sign("[") || tokens_.at_sign("{");
  if (tokens_.at_sign("(")) {
    node.arguments = arguments();
  } else if (value_follows && !tokens_.at_name("else") && !tokens_.at_name("or") &&
             !tokens_.at_name("and")) {
    if (tokens_.at_name("is")) tokens_.fail("one test at a time");
    node.arguments.positional.push_back(postfix(primary()));
  }
  ExpressionPtr value = make_expression(std::move(node), line);
  return negated ? make_expression(Unary{'!', std::move(value)}, line) : std::move(value);
}

Target ExpressionParser::single_target() {
  const Nesting nesting(depth_, tokens_.line());
  if (tokens_.skip_sign("(")) {
    Target inside = target();
    tokens_.expect_sign(")");
    return inside;
  }
  Target single{.name = tokens_.expect_name(), .attribute = {}, .items = {}};
  if (tokens_.skip_sign(".")) single.attribute = tokens_.expect_name();
  return single;
}

Target ExpressionParser::target() {
  Target first = single_target();
  if (!tokens_.at_sign(",")) return first;
  Target several;
  several.items.push_back(std::move(first));
  while (tokens_.skip_sign(",") && !tokens_.at_name("in") && !tokens_.at_sign("="))
    several.items.push_back(single_target());
  return several;
}

}  // namespace bloomery::jinja
