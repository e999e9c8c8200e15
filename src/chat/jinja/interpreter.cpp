#include "chat/jinja/interpreter.h"

#include <algorithm>

#include "chat/jinja/objects.h"
#include "chat/jinja/print.h"

namespace bloomery::jinja {

// How deep statements and expressions stand in each other, macros that call each other included.
class Depth {
 public:
  explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
    const int most = interpreter.heap_.limits().depth;
    check(interpreter.depth_ < most, "macros and expressions nest more than ", most, " deep");
    ++interpreter.depth_;
  }
  ~Depth() { --interpreter_.depth_; }

 private:
  Interpreter& interpreter_;
};

namespace {

// An Error that already says where.
class PlacedError : public Error {
 public:
  using Error::Error;
};

ScopePtr inside(const ScopePtr& around) {
  auto scope = std::make_shared<Scope>();
  scope->around = around;
  return scope;
}

}  // namespace

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->around.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

Text Interpreter::render(const Body& body, const ScopePtr& globals) {
  Text out;
  run(body, inside(globals), out);
  return out;
}

Interpreter::Flow Interpreter::run(const Body& body, const ScopePtr& scope, Text& out) {
  for (const Statement& statement : body) {
    const Flow flow = run(statement, scope, out);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Statement& statement, const ScopePtr& scope, Text& out) {
  heap_.step();
  const Depth depth(*this);
  try {
    return std::visit([&](const auto& node) { return run_node(node, scope, out); }, statement.node);
  } catch (const PlacedError&) {
    throw;
  } catch (const Error& error) {
    throw PlacedError(concat("line ", statement.line, ": ", error.what()));
  }
}

Value Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  heap_.step();
  const Depth depth(*this);
  return std::visit([&](const auto& node) { return node_value(node, scope); }, expression.node);
}

void Interpreter::write(const Text& text, Text& out) {
  heap_.charge(text.size());
  out.append(text);
}

Text Interpreter::captured(const Body& body, const ScopePtr& around) {
  Text text;
  run(body, inside(around), text);
  return text;
}

Interpreter::Flow Interpreter::run_node(const PlainText& node, const ScopePtr&, Text& out) {
  heap_.charge(node.text.size());
  out.append(node.text);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_node(const Output& node, const ScopePtr& scope, Text& out) {
  write(to_text(heap_, evaluate(*node.value, scope)), out);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_node(const If& node, const ScopePtr& scope, Text& out) {
  for (const auto& [condition, body] : node.branches) {
    if (evaluate(*condition, scope).truth()) return run(body, scope, out);
  }
  return run(node.otherwise, scope, out);
}

Interpreter::Flow Interpreter::run_node(const For& node, const ScopePtr& scope, Text& out) {
  return run_rounds(node, items(evaluate(*node.items, scope)), scope, 0, out);
}

Interpreter::Flow Interpreter::run_rounds(const For& node, std::vector<Value> items,
                                          const ScopePtr& scope, int level, Text& out) {
  if (node.condition != nullptr) {
    std::erase_if(items, [&](const Value& item) {
      const ScopePtr round = inside(scope);
      assign(node.target, item, round);
      return !evaluate(*node.condition, round).truth();
    });
  }
  if (items.empty()) return run(node.otherwise, inside(scope), out);
  Loop* const loop = heap_.object<Loop>(node, scope, items, level);
  for (std::size_t i = 0; i < items.size(); ++i) {
    heap_.step();
    loop->set_round(i);
    const ScopePtr round = inside(scope);
    round->variables["loop"] = loop;
    assign(node.target, items[i], round);
    if (run(node.body, round, out) == Flow::leave_loop) break;
  }
  return Flow::normal;
}

Text Interpreter::run_loop(const For& loop, const Value& value, const ScopePtr& scope, int level) {
  const Depth depth(*this);
  Text text;
  run_rounds(loop, items(value), scope, level, text);
  return text;
}

void Interpreter::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  if (!target.items.empty()) {
    const std::vector<Value> parts = items(value);
    check(parts.size() == target.items.size(), target.items.size(), " names for ", parts.size(),
          " values");
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target.items[i], parts[i], scope);
  } else if (target.attribute.empty()) {
    scope->variables[target.name] = value;
  } else {
    const Value* const holder = scope->find(target.name);
    auto* const names = holder != nullptr && holder->is(Kind::object)
                            ? dynamic_cast<Namespace*>(&holder->object())
                            : nullptr;
    check(names != nullptr, "cannot set ", target.name, ".", target.attribute, ": ", target.name,
          " is no namespace");
    names->values[target.attribute] = value;
  }
}

Interpreter::Flow Interpreter::run_node(const Set& node, const ScopePtr& scope, Text&) {
  assign(node.target, evaluate(*node.value, scope), scope);
  return Flow::normal;
}

Value Interpreter::filter_block(const Expression& chain, const Text& text, const ScopePtr& scope) {
  const Filter& node = std::get<Filter>(chain.node);
  const Value input = node.input == nullptr ? Value(text) : filter_block(*node.input, text, scope);
  return filter(node.name, input, evaluate(node.arguments, scope));
}

Interpreter::Flow Interpreter::run_node(const SetBlock& node, const ScopePtr& scope, Text&) {
  const Text text = captured(node.body, scope);
  assign(node.target,
         node.filter == nullptr ? Value(text) : filter_block(*node.filter, text, scope), scope);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_node(const FilterBlock& node, const ScopePtr& scope, Text& out) {
  write(to_text(heap_, filter_block(*node.filter, captured(node.body, scope), scope)), out);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_node(const MacroDefinition& node, const ScopePtr& scope, Text&) {
  scope->variables[node.name] = heap_.object<Macro>(node, scope);
  return Flow::normal;
}

Text Interpreter::run_macro(const MacroDefinition& macro, const ScopePtr& around,
                            const Arguments& arguments) {
  const Depth depth(*this);
  const ScopePtr scope = inside(around);
  const auto& names = macro.parameters.names;
  const std::size_t given = arguments.positional.size();
  List* const more = heap_.list({}, ListForm::tuple);
  for (std::size_t i = names.size(); i < given; ++i) more->items.push_back(arguments.positional[i]);
  Dict* const more_named = heap_.dict();
  scope->variables["varargs"] = more;
  scope->variables["kwargs"] = more_named;
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    check(at == names.end() || static_cast<std::size_t>(at - names.begin()) >= given, "macro ",
          macro.name, " gets ", name, " twice");
    if (at == names.end() && name != "caller") {
      more_named->set(Text(name), value);
    } else {
      scope->variables[name] = value;
    }
  }
  const std::size_t required = names.size() - macro.parameters.defaults.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i < given) {
      scope->variables[names[i]] = arguments.positional[i];
    } else if (!scope->variables.contains(names[i])) {
      scope->variables[names[i]] = i < required
                                       ? Value::undefined(names[i])
                                       : evaluate(*macro.parameters.defaults[i - required], scope);
    }
  }
  Text text;
  run(macro.body, scope, text);
  return text;
}

Interpreter::Flow Interpreter::run_node(const CallBlock& node, const ScopePtr& scope, Text& out) {
  const Call& call_node = std::get<Call>(node.call->node);
  Arguments arguments = evaluate(call_node.arguments, scope);
  arguments.named.emplace_back("caller", heap_.object<Macro>(node.caller, scope));
  write(to_text(heap_, call(evaluate(*call_node.callee, scope), arguments)), out);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_node(const With& node, const ScopePtr& scope, Text& out) {
  const ScopePtr own = inside(scope);
  for (const auto& [target, value] : node.variables) assign(target, evaluate(*value, scope), own);
  return run(node.body, own, out);
}

Interpreter::Flow Interpreter::run_node(const Generation& node, const ScopePtr& scope, Text& out) {
  Text text = captured(node.body, scope);
  text.add_mark(kGenerated);
  write(text, out);
  return Flow::normal;
}

}  // namespace bloomery::jinja
