// A chat template: it is parsed and rendered within limits, or refused.
#include "chat/jinja/template.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const jinja::Template chat(as_text(input), "template");
  jinja::RenderOptions options;
  options.limits = {.steps = 20'000, .bytes = 1 << 20, .depth = 200};
  options.now = 0;
  chat.render(
      {{"messages",
        R"([{"role": "user", "content": "a <s>"}, {"role": "assistant", "content": "b"}])", true},
       {"tools", R"([{"type": "function", "function": {"name": "f"}}])", true},
       {"add_generation_prompt", "true"},
       {"bos_token", R"("<s>")"}},
      options);
}

}  // namespace bloomery
