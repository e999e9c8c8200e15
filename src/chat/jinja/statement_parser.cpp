#include <functional>
#include <map>

#include "chat/jinja/parser.h"

namespace bloomery::jinja {
namespace {

using Type = Token::Type;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Body whole() {
    Body body = until({});
    check(tokens_.at(Type::end), "line ", tokens_.line(), ": {% ", tokens_.peek().value,
          " %} ends nothing");
    return body;
  }

 private:
  // Statements up to a tag of one of these names, on which it stops, or to the end.
  Body until(std::initializer_list<std::string_view> ends) {
    check(++depth_ <= kMaxTreeDepth, "line ", tokens_.line(), ": blocks nest more than ",
          kMaxTreeDepth, " deep");
    Body body;
    while (!tokens_.at(Type::end)) {
      const int line = tokens_.line();
      if (tokens_.at(Type::data)) {
        body.push_back({PlainText{tokens_.take().value}, line});
      } else if (tokens_.at(Type::variable_begin)) {
        tokens_.take();
        Output output{expressions_.tuple()};
        tokens_.expect(Type::variable_end, "'}}'");
        body.push_back({std::move(output), line});
      } else {
        tokens_.take();
        for (const std::string_view end : ends) {
          if (tokens_.at_name(end)) return --depth_, std::move(body);
        }
        body.push_back(statement());
      }
    }
    check(ends.size() == 0, "line ", tokens_.line(), ": the template ends before {% ",
          ends.size() == 0 ? "" : *(ends.end() - 1), " %}");
    --depth_;
    return body;
  }

  // Until the tag that ends it, which is read too.
  Body block(std::string_view end) {
    Body body = until({end});
    tokens_.take();
    close_tag();
    return body;
  }
  void close_tag() { tokens_.expect(Type::block_end, "'%}'"); }

  Statement statement() {
    const int line = tokens_.line();
    const std::string name = tokens_.expect_name();
    static const std::map<std::string, Statement (StatementParser::*)()> kKinds = {
        {"if", &StatementParser::condition},     {"for", &StatementParser::loop},
        {"set", &StatementParser::assignment},   {"macro", &StatementParser::macro},
        {"call", &StatementParser::call},        {"filter", &StatementParser::filter},
        {"with", &StatementParser::with},        {"generation", &StatementParser::generation},
        {"break", &StatementParser::leave_loop}, {"continue", &StatementParser::next_round},
    };
    const auto kind = kKinds.find(name);
    check(kind != kKinds.end(), "line ", line, ": {% ", name, " %} is not known in chat templates");
    Statement made = (this->*kind->second)();
    made.line = line;
    return made;
  }

  Statement condition() {
    If node;
    for (;;) {
      ExpressionPtr test = expressions_.tuple(false);
      close_tag();
      node.branches.emplace_back(std::move(test), until({"elif", "else", "endif"}));
      if (tokens_.skip_name("elif")) continue;
      const bool otherwise = tokens_.take().value == "else";
      close_tag();
      if (otherwise) node.otherwise = block("endif");
      return {std::move(node)};
    }
  }

  Statement loop() {
    For node;
    node.target = expressions_.target();
    if (!tokens_.skip_name("in")) tokens_.fail("'in'");
    node.items = expressions_.tuple(false);
    if (tokens_.skip_name("if")) node.condition = expressions_.expression();
    node.recursive = tokens_.skip_name("recursive");
    close_tag();
    ++loops_;
    node.body = until({"else", "endfor"});
    --loops_;
    const bool otherwise = tokens_.take().value == "else";
    close_tag();
    if (otherwise) node.otherwise = block("endfor");
    return {std::move(node)};
  }

  Statement assignment() {
    Target target = expressions_.target();
    if (tokens_.skip_sign("=")) {
      Set node{std::move(target), expressions_.tuple()};
      close_tag();
      return {std::move(node)};
    }
    SetBlock node{.target = std::move(target), .filter = nullptr, .body = {}};
    if (tokens_.skip_sign("|")) node.filter = expressions_.chain_of_filters(nullptr);
    close_tag();
    node.body = block("endset");
    return {std::move(node)};
  }

  Parameters parameters() {
    Parameters list;
    tokens_.expect_sign("(");
    while (!tokens_.at_sign(")")) {
      if (!list.names.empty()) tokens_.expect_sign(",");
      if (tokens_.at_sign(")")) break;
      list.names.push_back(tokens_.expect_name());
      if (tokens_.skip_sign("=")) {
        list.defaults.push_back(expressions_.expression());
      } else if (!list.defaults.empty()) {
        tokens_.fail("a default value");
      }
    }
    tokens_.expect_sign(")");
    return list;
  }

  // The body of a macro, out of which no break leads.
  Body separate(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block(end);
    loops_ = loops;
    return body;
  }

  Statement macro() {
    MacroDefinition node;
    node.name = tokens_.expect_name();
    node.parameters = parameters();
    close_tag();
    node.body = separate("endmacro");
    return {std::move(node)};
  }

  Statement call() {
    CallBlock node;
    node.caller.name = "caller";
    if (tokens_.at_sign("(")) node.caller.parameters = parameters();
    node.call = expressions_.expression();
    if (!std::holds_alternative<Call>(node.call->node)) tokens_.fail("a call");
    close_tag();
    node.caller.body = separate("endcall");
    return {std::move(node)};
  }

  Statement filter() {
    FilterBlock node{.filter = expressions_.chain_of_filters(nullptr), .body = {}};
    close_tag();
    node.body = block("endfilter");
    return {std::move(node)};
  }

  Statement with() {
    With node;
    while (!tokens_.at(Type::block_end)) {
      if (!node.variables.empty()) tokens_.expect_sign(",");
      Target target{.name = tokens_.expect_name(), .attribute = {}, .items = {}};
      tokens_.expect_sign("=");
      node.variables.emplace_back(std::move(target), expressions_.expression());
    }
    close_tag();
    node.body = block("endwith");
    return {std::move(node)};
  }

  Statement generation() {
    close_tag();
    return {Generation{separate("endgeneration")}};
  }

  Statement leave_loop() {
    check(loops_ > 0, "line ", tokens_.line(), ": {% break %} outside of a loop");
    close_tag();
    return {Break()};
  }

  Statement next_round() {
    check(loops_ > 0, "line ", tokens_.line(), ": {% continue %} outside of a loop");
    close_tag();
    return {Continue()};
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;  // around the statement
};

}  // namespace

Body parse(std::string_view source) { return StatementParser(tokenize(source)).whole(); }

}  // namespace bloomery::jinja
