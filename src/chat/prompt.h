// How a record becomes the text that a model is trained on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chat/jinja/template.h"
#include "chat/preference_record.h"
#include "chat/record.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// The chat template that comes with a tokenizer: chat_template.jinja, or chat_template of
// tokenizer_config.json, of several the one named default. Nothing where there is none.
std::optional<std::string> find_chat_template(const std::filesystem::path& folder);

// Alpaca's prompt as Megatron-DeepSpeed's finetune_llama has it, for --prompt-template alpaca.
extern const char* const kAlpacaTemplate;
// A prompt and what completes it as they are, for --prompt-template plain.
extern const char* const kPlainTemplate;

// Messages under headings, for models that have no chat template.
extern const char* const kChatTemplate;

// What templates know of a tokenizer: bos_token and its like, as variables.
std::vector<jinja::Input> token_variables(const Tokenizer& tokenizer);

class Prompt {
 public:
  // Of messages, if `chat`, else of the record's columns. Of a chat template without
  // {% generation %} the answers are found as what follows the prompt for them.
  Prompt(const std::string& source, const std::string& name, bool chat, const Tokenizer& tokenizer);

  bool is_chat() const { return chat_; }
  // Whether the template's source has this word.
  bool mentions(std::string_view word) const { return source_.find(word) != std::string::npos; }
  // Bytes to learn are marked jinja::kGenerated, those of the record jinja::kFromInput. An
  // UnmaskableRecord when the template does not show where answers are; `with_answers` false: they
  // are not looked for.
  jinja::Text render(const Record& record, bool with_answers = true) const;
  // One side of a pair; answers in the prompt are not marked.
  jinja::Text render(const PreferenceRecord& pair, bool chosen, bool with_answers = true) const;
  // Of a chat: messages and tools, as JSON, and the beginning of an answer to them.
  jinja::Text ask(const std::string& messages, const std::string& tools) const {
    return render_messages(messages, tools, true);
  }

 private:
  jinja::Text render_messages(const std::string& messages, const std::string& tools,
                              bool for_answer) const;
  void mark_answers(const Record& record, jinja::Text& text) const;

  jinja::Template template_;
  std::string source_, name_;
  bool chat_, marks_answers_;
  std::vector<jinja::Input> tokens_;
};

}  // namespace bloomery
