#include "chat/jinja/ast.h"

#include <algorithm>

namespace bloomery::jinja {
namespace {

// The depth of the deepest child.
class Deepest {
 public:
  int of(const decltype(Expression::node)& node) {
    std::visit([this](const auto& one) { visit(one); }, node);
    return depth_;
  }

 private:
  template <class... Pointers>
  void add(const Pointers&... children) {
    ((depth_ = std::max(depth_, children == nullptr ? 0 : children->depth)), ...);
  }
  void add_all(const ArgumentList& list) {
    for (const auto& child : list.positional) add(child);
    for (const auto& child : list.named) add(child.second);
    add(list.more_positional, list.more_named);
  }

  void visit(const Constant&) {}
  void visit(const Variable&) {}
  void visit(const ListLiteral& node) {
    for (const auto& child : node.items) add(child);
  }
  void visit(const DictLiteral& node) {
    for (const auto& [key, value] : node.items) add(key, value);
  }
  void visit(const Attribute& node) { add(node.object); }
  void visit(const Subscript& node) { add(node.object, node.index); }
  void visit(const Slice& node) { add(node.object, node.start, node.stop, node.step); }
  void visit(const Call& node) {
    add(node.callee);
    add_all(node.arguments);
  }
  void visit(const Filter& node) {
    add(node.input);
    add_all(node.arguments);
  }
  void visit(const Test& node) {
    add(node.input);
    add_all(node.arguments);
  }
  void visit(const Unary& node) { add(node.operand); }
  void visit(const Binary& node) { add(node.left, node.right); }
  void visit(const Comparison& node) {
    add(node.first);
    for (const auto& [sign, child] : node.rest) add(child);
  }
  void visit(const Conditional& node) { add(node.condition, node.then, node.otherwise); }

  int depth_ = 0;
};

}  // namespace

ExpressionPtr make_expression(decltype(Expression::node) node, int line) {
  const int depth = 1 + Deepest().of(node);
  check(depth <= kMaxTreeDepth, "line ", line, ": expressions nest more than ", kMaxTreeDepth,
        " deep");
  return std::make_unique<const Expression>(Expression{std::move(node), line, depth});
}

}  // namespace bloomery::jinja
