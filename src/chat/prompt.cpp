#include "chat/prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_scan.h"

namespace bloomery {

using Json = nlohmann::ordered_json;

const char* const kAlpacaTemplate =
    "Below is an instruction that describes a task{% if input %}, paired with an input that "
    "provides further context{% endif %}. Write a response that appropriately completes the "
    "request.\n\n### Instruction:\n{{ instruction }}\n\n"
    "{% if input %}### Input:\n{{ input }}\n\n{% endif %}### Response:"
    "{% generation %}{{ output }}{{ eos_token }}{% endgeneration %}";

const char* const kPlainTemplate =
    "{{ prompt }}{% generation %}{{ completion or response }}{{ eos_token }}{% endgeneration %}";

const char* const kChatTemplate =
    "{% for message in messages %}{{ '### ' + message.role | capitalize + ':\\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{{ eos_token }}"
    "{% endgeneration %}{% else %}{{ message.content }}{% endif %}{{ '\\n\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '### Assistant:\\n' }}{% endif %}";

std::optional<std::string> find_chat_template(const std::filesystem::path& folder) {
  const auto file = folder / "chat_template.jinja";
  if (std::filesystem::exists(file)) return read_file(file);
  const auto config = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(config)) return std::nullopt;
  const std::string text = read_file(config);
  check_json_depth(text);
  const Json root = Json::parse(text, nullptr, false);
  check(root.is_object(), config.string(), " is not a JSON object");
  if (!root.contains("chat_template")) return std::nullopt;
  const Json& found = root["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  for (const Json& one : found.is_array() ? found : Json::array()) {
    if (one.is_object() && one.value("name", "") == "default" && one.contains("template") &&
        one["template"].is_string()) {
      return one["template"].get<std::string>();
    }
  }
  return std::nullopt;
}

std::vector<jinja::Input> token_variables(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  std::vector<jinja::Input> variables;
  const auto add = [&](const char* name, const std::optional<TokenId>& id) {
    if (id) variables.push_back({name, Json(tokenizer.piece(*id)).dump()});
  };
  add("bos_token", special.bos);
  add("eos_token", special.eos);
  add("pad_token", special.pad);
  add("unk_token", special.unk);
  return variables;
}

Prompt::Prompt(const std::string& source, const std::string& name, bool chat,
               const Tokenizer& tokenizer)
    : template_(source, name),
      source_(source),
      name_(name),
      chat_(chat),
      marks_answers_(mentions("endgeneration")),
      tokens_(token_variables(tokenizer)) {}

jinja::Text Prompt::render_messages(const std::string& messages, const std::string& tools,
                                    bool for_answer) const {
  std::vector<jinja::Input> variables = tokens_;
  variables.push_back({"messages", messages, true});
  variables.push_back({"tools", tools, true});
  variables.push_back({"documents", "null"});
  variables.push_back({"add_generation_prompt", for_answer ? "true" : "false"});
  return template_.render(variables);
}

// The end of an answer is where the text of all messages up to it ends; its start, where the text
// that asks for it ends.
void Prompt::mark_answers(const Record& record, jinja::Text& text) const {
  const Json messages = Json::parse(record.messages);
  Json so_far = Json::array();
  jinja::Text marked;
  // A template may refuse the beginning of a conversation that it takes as a whole.
  const auto rendered = [&](bool for_answer) -> std::string {
    try {
      return render_messages(so_far.dump(), record.tools, for_answer).bytes();
    } catch (const Error& error) {
      throw UnmaskableRecord(concat(error.what(), ", when asked where answers begin"));
    }
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool answer = messages[i].value("role", "") == "assistant";
    const std::string asking = answer ? rendered(true) : "";
    so_far.push_back(messages[i]);
    if (!answer) continue;
    const std::size_t end = i + 1 == messages.size() ? text.size() : rendered(false).size();
    const bool shown = text.bytes().starts_with(asking) && end >= asking.size() &&
                       end <= text.size() && asking.size() >= marked.size();
    if (!shown) {
      throw UnmaskableRecord(
          concat(name_,
                 " does not show where answers begin: what it makes of the conversation does not "
                 "begin with what it makes of its first messages; {% generation %} around answers "
                 "in a --chat-template would, and so does --response-template"));
    }
    marked.append(text, marked.size(), asking.size());
    jinja::Text span = text.part(asking.size(), end);
    span.add_mark(jinja::kGenerated);
    marked.append(span);
  }
  marked.append(text, marked.size(), text.size());
  text = std::move(marked);
}

jinja::Text Prompt::render(const Record& record, bool with_answers) const {
  if (chat_) {
    check(record.messages != "null",
          "the record has no conversation: give it messages, conversations, prompt and response, "
          "or instruction and output; or name its columns with --prompt-template FILE");
    jinja::Text text = render_messages(record.messages, record.tools, false);
    if (with_answers && !marks_answers_) mark_answers(record, text);
    return text;
  }
  std::vector<jinja::Input> variables = tokens_;
  const Json columns = Json::parse(record.columns);
  for (const auto& column : columns.items())
    variables.push_back({column.key(), column.value().dump(), true});
  return template_.render(variables);
}

jinja::Text Prompt::render(const PreferenceRecord& pair, bool chosen, bool with_answers) const {
  const Record& record = chosen ? pair.chosen : pair.rejected;
  const jinja::Text text = render(record, with_answers);
  if (!chat_ || !with_answers) return text;
  const std::string asking = ask(pair.prompt, record.tools).bytes();
  const auto [end, unused] = std::ranges::mismatch(text.bytes(), asking);
  const auto answer = static_cast<std::size_t>(end - text.bytes().begin());
  jinja::Text marked;
  for (std::size_t at = 0; at < answer; ++at) {
    marked.append(std::string_view(text.bytes()).substr(at, 1),
                  static_cast<char>(text.mark(at) & ~jinja::kGenerated));
  }
  marked.append(text, answer, text.size());
  return marked;
}

}  // namespace bloomery
