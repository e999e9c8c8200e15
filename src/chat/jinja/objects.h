// What templates call, or read attributes of, beside texts, lists and mappings.
#pragma once

#include <functional>

#include "chat/jinja/interpreter.h"

namespace bloomery::jinja {

class Function final : public Object {
 public:
  using Body = std::function<Value(Interpreter&, const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return body_(interpreter, arguments);
  }
  std::string describe() const override { return "<function " + name_ + ">"; }

 private:
  const std::string name_;
  const Body body_;
};

class Namespace final : public Object {
 public:
  Value attribute(Interpreter&, std::string_view name) override {
    const auto found = values.find(name);
    return found == values.end() ? Value() : found->second;
  }
  std::string describe() const override { return "<Namespace>"; }
  std::map<std::string, Value, std::less<>> values;
};

class Macro final : public Object {
 public:
  Macro(const MacroDefinition& definition, ScopePtr around)
      : definition_(definition), around_(std::move(around)) {}
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return interpreter.run_macro(definition_, around_, arguments);
  }
  Value attribute(Interpreter&, std::string_view name) override {
    return name == "name" ? Value(Text(definition_.name)) : Value();
  }
  std::string describe() const override { return "<Macro '" + definition_.name + "'>"; }

 private:
  const MacroDefinition& definition_;
  const ScopePtr around_;
};

// The variable `loop`.
class Loop final : public Object {
 public:
  Loop(const For& statement, ScopePtr around, std::vector<Value> items, int level)
      : statement_(statement),
        around_(std::move(around)),
        items_(std::move(items)),
        level_(level) {}

  void set_round(std::size_t round) { round_ = round; }
  Value attribute(Interpreter& interpreter, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override;
  std::string describe() const override { return "<LoopContext>"; }

 private:
  const For& statement_;
  const ScopePtr around_;
  const std::vector<Value> items_;
  const int level_;
  std::size_t round_ = 0;
  std::vector<Value> last_changed_;
};

}  // namespace bloomery::jinja
