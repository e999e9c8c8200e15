#include <limits>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/objects.h"
#include "chat/jinja/print.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {

Value Interpreter::node_value(const Variable& node, const ScopePtr& scope) {
  const Value* const found = scope->find(node.name);
  return found == nullptr ? Value::undefined(node.name) : *found;
}

Value Interpreter::node_value(const ListLiteral& node, const ScopePtr& scope) {
  std::vector<Value> values;
  for (const ExpressionPtr& item : node.items) values.push_back(evaluate(*item, scope));
  return heap_.list(std::move(values), node.tuple ? ListForm::tuple : ListForm::list);
}

Value Interpreter::node_value(const DictLiteral& node, const ScopePtr& scope) {
  Dict* const dict = heap_.dict();
  for (const auto& [key, value] : node.items) {
    const Value name = evaluate(*key, scope);
    dict->set(name, evaluate(*value, scope));
  }
  return dict;
}

Value Interpreter::node_value(const Attribute& node, const ScopePtr& scope) {
  return attribute(evaluate(*node.object, scope), node.name);
}

Value Interpreter::node_value(const Subscript& node, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  return subscript(object, evaluate(*node.index, scope));
}

Value Interpreter::node_value(const Slice& node, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  const auto bound = [&](const ExpressionPtr& given) {
    return given == nullptr ? Value::none() : evaluate(*given, scope);
  };
  const Value start = bound(node.start), stop = bound(node.stop);
  return slice(heap_, object, start, stop, bound(node.step));
}

Arguments Interpreter::evaluate(const ArgumentList& list, const ScopePtr& scope) {
  Arguments arguments;
  for (const ExpressionPtr& item : list.positional)
    arguments.positional.push_back(evaluate(*item, scope));
  if (list.more_positional != nullptr) {
    for (const Value& item : items(evaluate(*list.more_positional, scope)))
      arguments.positional.push_back(item);
  }
  for (const auto& [name, item] : list.named)
    arguments.named.emplace_back(name, evaluate(*item, scope));
  if (list.more_named != nullptr) {
    const Value more = evaluate(*list.more_named, scope);
    check(more.is(Kind::dict), "** of ", more.what(), ", no mapping");
    for (const auto& [key, value] : more.dict().items()) {
      check(key.is(Kind::text), "** of a mapping whose keys are no texts");
      arguments.named.emplace_back(key.text().bytes(), value);
    }
  }
  return arguments;
}

Value Interpreter::node_value(const Call& node, const ScopePtr& scope) {
  const Value callee = evaluate(*node.callee, scope);
  return call(callee, evaluate(node.arguments, scope));
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  check(callee.is(Kind::object) && callee.object().callable(), "cannot call ", callee.what());
  return callee.object().call(*this, arguments);
}

Value Interpreter::node_value(const Filter& node, const ScopePtr& scope) {
  check(node.input != nullptr, "a filter without a value");
  const Value input = evaluate(*node.input, scope);
  return filter(node.name, input, evaluate(node.arguments, scope));
}

Value Interpreter::node_value(const Test& node, const ScopePtr& scope) {
  const Value input = evaluate(*node.input, scope);
  return test(node.name, input, evaluate(node.arguments, scope));
}

Value Interpreter::node_value(const Unary& node, const ScopePtr& scope) {
  const Value operand = evaluate(*node.operand, scope);
  if (node.sign == '!') return !operand.truth();
  check(operand.is_number(), node.sign, " of ", operand.what());
  if (operand.is(Kind::real)) return node.sign == '-' ? -operand.number() : operand.number();
  check(node.sign != '-' || operand.whole() != std::numeric_limits<std::int64_t>::min(),
        "a number does not fit 64 bits");
  return node.sign == '-' ? -operand.whole() : operand.whole();
}

Value Interpreter::node_value(const Binary& node, const ScopePtr& scope) {
  const Value left = evaluate(*node.left, scope);
  if (node.sign == "and") return left.truth() ? evaluate(*node.right, scope) : left;
  if (node.sign == "or") return left.truth() ? left : evaluate(*node.right, scope);
  return binary(heap_, node.sign, left, evaluate(*node.right, scope));
}

Value Interpreter::node_value(const Comparison& node, const ScopePtr& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [sign, operand] : node.rest) {
    const Value right = evaluate(*operand, scope);
    const bool holds = sign == "=="       ? equal(left, right)
                       : sign == "!="     ? !equal(left, right)
                       : sign == "in"     ? contains(*this, right, left)
                       : sign == "not in" ? !contains(*this, right, left)
                       : sign == "<"      ? less(left, right)
                       : sign == ">"      ? less(right, left)
                       : sign == "<="     ? less(left, right) || equal(left, right)
                                          : less(right, left) || equal(left, right);
    if (!holds) return false;
    left = right;
  }
  return true;
}

Value Interpreter::node_value(const Conditional& node, const ScopePtr& scope) {
  if (evaluate(*node.condition, scope).truth()) return evaluate(*node.then, scope);
  return node.otherwise == nullptr ? Value() : evaluate(*node.otherwise, scope);
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  check(!object.is(Kind::undefined), "'", name, "' of ", object.what());
  if (object.is(Kind::object)) {
    const Value found = object.object().attribute(*this, name);
    return found.is(Kind::undefined) && found.undefined_name().empty()
               ? Value::undefined(std::string(name))
               : found;
  }
  if (Object* const method = find_method(heap_, object, name)) return method;
  if (object.is(Kind::dict)) {
    if (const Value* item = object.dict().find(name)) return *item;
  }
  return Value::undefined(std::string(name));
}

Value Interpreter::subscript(const Value& object, const Value& index) {
  check(!object.is(Kind::undefined), "an item of ", object.what());
  if (object.is(Kind::dict)) {
    const bool possible = index.is_number() || index.is(Kind::text) || index.is(Kind::none);
    const Value* const item = possible ? object.dict().find(index) : nullptr;
    if (item != nullptr) return *item;
  }
  if (index.is_whole()) {
    const bool list = object.is(Kind::list) && (object.list().form == ListForm::list ||
                                                object.list().form == ListForm::tuple);
    if (list || object.is(Kind::text)) {
      const Value stop = index.whole() == -1 ? Value::none() : Value(index.whole() + 1);
      const Value part = slice(heap_, object, index, stop, Value::none());
      if (list && !part.list().items.empty()) return part.list().items[0];
      if (!list && !part.text().empty()) return part;
    }
  }
  if (!index.is(Kind::text)) return Value::undefined("item " + to_text(heap_, index).bytes());
  return object.is(Kind::dict) && find_method(heap_, object, index.text().bytes()) == nullptr
             ? Value::undefined(index.text().bytes())
             : attribute(object, index.text().bytes());
}

std::vector<Value> Interpreter::items(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::undefined:
      break;
    case Kind::list:
      if (value.list().form == ListForm::generator) return std::exchange(value.list().items, {});
      items = value.list().items;
      break;
    case Kind::dict:
      for (const auto& [key, item] : value.dict().items()) items.push_back(key);
      break;
    case Kind::text: {
      const std::string& bytes = value.text().bytes();
      heap_.charge(sizeof(Value) + sizeof(Text), bytes.size());
      for (std::size_t i = 0; i < bytes.size();) {
        const std::size_t end = i + static_cast<std::size_t>(utf8_at(bytes, i).length);
        items.emplace_back(value.text().part(i, end));
        i = end;
      }
      break;
    }
    default:
      throw Error(concat("cannot go through ", value.what()));
  }
  heap_.charge(sizeof(Value), items.size());
  heap_.step(static_cast<std::int64_t>(items.size()));
  return items;
}

}  // namespace bloomery::jinja
