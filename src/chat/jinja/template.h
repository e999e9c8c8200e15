// A chat template: Jinja as transformers runs it, without what reaches outside (include, import,
// attributes of Python's own objects).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/heap.h"

namespace bloomery::jinja {

// A variable of the template, as JSON text.
struct Input {
  std::string name, json;
  // Its texts come from a user: they are marked kFromInput wherever they end up.
  bool from_input = false;
};

struct RenderOptions {
  Limits limits;
  std::optional<std::int64_t> now;  // seconds since 1970; nothing: the clock
};

class Template {
 public:
  // An Error says which line of `name` is wrong.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;

  // Can be called by several threads at once.
  Text render(const std::vector<Input>& variables, const RenderOptions& options = {}) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
  std::string name_;
};

}  // namespace bloomery::jinja
