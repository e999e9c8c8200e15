#include "samples/instruct/record_template.h"

#include "base/error.h"
#include "base/file.h"

namespace bloomery {

RecordTemplate choose_template(const InstructOptions& o, const std::string& folder) {
  check(o.chat_template.empty() || o.prompt_template.empty(),
        "--chat-template and --prompt-template exclude each other");
  if (o.prompt_template == "alpaca") return {kAlpacaTemplate, "the template alpaca"};
  if (o.prompt_template == "plain") return {kPlainTemplate, "the template plain"};
  if (!o.prompt_template.empty()) return {read_file(o.prompt_template), o.prompt_template};
  if (!o.chat_template.empty()) {
    return {.source = read_file(o.chat_template),
            .name = o.chat_template,
            .is_chat = true,
            .is_new = true};
  }
  if (const auto own = folder.empty() ? std::nullopt : find_chat_template(folder)) {
    return {.source = *own, .name = "the chat template of " + folder, .is_chat = true};
  }
  return {.source = kChatTemplate,
          .name = "the built-in chat template",
          .is_chat = true,
          .is_new = true,
          .is_built_in = true};
}

}  // namespace bloomery
