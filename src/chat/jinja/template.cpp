#include "chat/jinja/template.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/print.h"

namespace bloomery::jinja {

struct Template::Parsed {
  Body body;
};

namespace {

nlohmann::ordered_json parse_json(const Input& input) {
  try {
    return nlohmann::ordered_json::parse(input.json);
  } catch (const nlohmann::ordered_json::exception& error) {
    throw Error(concat(input.name, " is not valid JSON: ", error.what()));
  }
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  constexpr std::size_t kMost = 4 << 20;
  check(source.size() <= kMost, name_, ": a chat template of ", source.size(), " bytes; at most ",
        kMost);
  try {
    parsed_ = std::make_unique<const Parsed>(Parsed{parse(source)});
  } catch (const Error& error) {
    throw Error(concat(name_, ": ", error.what()));
  }
}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;

Text Template::render(const std::vector<Input>& variables, const RenderOptions& options) const {
  Heap heap(options.limits);
  const auto globals = std::make_shared<Scope>();
  try {
    add_globals(heap, *globals);
    for (const Input& input : variables) {
      globals->variables[input.name] =
          from_json(heap, parse_json(input), input.from_input ? kFromInput : '\0');
    }
    Interpreter interpreter(heap, options.now.value_or(std::time(nullptr)));
    return interpreter.render(parsed_->body, globals);
  } catch (const Error& error) {
    throw Error(concat(name_, ": ", error.what()));
  }
}

}  // namespace bloomery::jinja
