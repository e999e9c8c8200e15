// Runs the tree of a template. Errors name the line of the statement.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "chat/jinja/ast.h"
#include "chat/jinja/heap.h"

namespace bloomery::jinja {

// Names with their values; what is not here is looked for around it. Shared, because a macro keeps
// the scope in which it was made.
struct Scope {
  std::map<std::string, Value, std::less<>> variables;
  std::shared_ptr<Scope> around;

  const Value* find(std::string_view name) const;
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  // `now`: seconds since 1970, what strftime_now shows.
  Interpreter(Heap& heap, std::int64_t now) : heap_(heap), now_(now) {}

  Text render(const Body& body, const ScopePtr& globals);

  Heap& heap() { return heap_; }
  std::int64_t now() const { return now_; }

  Value evaluate(const Expression& expression, const ScopePtr& scope);
  Value call(const Value& callee, const Arguments& arguments);
  Value filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool test(const std::string& name, const Value& input, const Arguments& arguments);
  // object.name; with `item`, object[name] comes first.
  Value attribute(const Value& object, std::string_view name);
  Value subscript(const Value& object, const Value& index);
  // What a loop goes through: of a mapping its keys, of a text its characters. A generator is
  // empty afterwards.
  std::vector<Value> items(const Value& value);
  // The text that statements write, in a scope of their own.
  Text run_macro(const MacroDefinition& macro, const ScopePtr& around, const Arguments& arguments);
  // One round of a recursive loop, for loop(items).
  Text run_loop(const For& loop, const Value& value, const ScopePtr& scope, int level);

 private:
  friend class Depth;
  enum class Flow { normal, leave_loop, next_round };

  Flow run(const Body& body, const ScopePtr& scope, Text& out);
  Flow run(const Statement& statement, const ScopePtr& scope, Text& out);
  Flow run_node(const PlainText& node, const ScopePtr&, Text& out);
  Flow run_node(const Output& node, const ScopePtr& scope, Text& out);
  Flow run_node(const If& node, const ScopePtr& scope, Text& out);
  Flow run_node(const For& node, const ScopePtr& scope, Text& out);
  Flow run_node(const Set& node, const ScopePtr& scope, Text& out);
  Flow run_node(const SetBlock& node, const ScopePtr& scope, Text& out);
  Flow run_node(const MacroDefinition& node, const ScopePtr& scope, Text& out);
  Flow run_node(const CallBlock& node, const ScopePtr& scope, Text& out);
  Flow run_node(const FilterBlock& node, const ScopePtr& scope, Text& out);
  Flow run_node(const With& node, const ScopePtr& scope, Text& out);
  Flow run_node(const Generation& node, const ScopePtr& scope, Text& out);
  Flow run_node(const Break&, const ScopePtr&, Text&) { return Flow::leave_loop; }
  Flow run_node(const Continue&, const ScopePtr&, Text&) { return Flow::next_round; }

  Flow run_rounds(const For& node, std::vector<Value> items, const ScopePtr& scope, int level,
                  Text& out);
  Text captured(const Body& body, const ScopePtr& around);
  void assign(const Target& target, const Value& value, const ScopePtr& scope);
  void write(const Text& text, Text& out);
  // The filters of a block on its text.
  Value filter_block(const Expression& chain, const Text& text, const ScopePtr& scope);

  Value node_value(const Constant& node, const ScopePtr&) { return node.value; }
  Value node_value(const Variable& node, const ScopePtr& scope);
  Value node_value(const ListLiteral& node, const ScopePtr& scope);
  Value node_value(const DictLiteral& node, const ScopePtr& scope);
  Value node_value(const Attribute& node, const ScopePtr& scope);
  Value node_value(const Subscript& node, const ScopePtr& scope);
  Value node_value(const Slice& node, const ScopePtr& scope);
  Value node_value(const Call& node, const ScopePtr& scope);
  Value node_value(const Filter& node, const ScopePtr& scope);
  Value node_value(const Test& node, const ScopePtr& scope);
  Value node_value(const Unary& node, const ScopePtr& scope);
  Value node_value(const Binary& node, const ScopePtr& scope);
  Value node_value(const Comparison& node, const ScopePtr& scope);
  Value node_value(const Conditional& node, const ScopePtr& scope);
  Arguments evaluate(const ArgumentList& list, const ScopePtr& scope);

  Heap& heap_;
  const std::int64_t now_;
  int depth_ = 0;
};

// Parts of the language that have files of their own.
Value binary(Heap& heap, const std::string& sign, const Value& left, const Value& right);
bool contains(Interpreter& interpreter, const Value& container, const Value& item);
Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop,
            const Value& step);
// Null where the kind of value has no such method.
Object* find_method(Heap& heap, const Value& object, std::string_view name);
// range, dict, namespace, raise_exception, strftime_now, ...
void add_globals(Heap& heap, Scope& scope);

}  // namespace bloomery::jinja
