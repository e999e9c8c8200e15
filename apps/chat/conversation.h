// A conversation: what was said, what its commands do, and the answers of a model.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "generate/engine.h"
#include "serve/served_model.h"

namespace bloomery {

struct ConversationOptions {
  std::string system;               // what the model is told first; empty: nothing
  std::int64_t max_new_tokens = 0;  // of an answer; 0: as many as there is room for
  SamplingOptions sampling;
};

class Conversation {
 public:
  // Model and engine must outlive it.
  Conversation(const ServedModel& model, Engine& engine, const ConversationOptions& options);

  // A line that was typed: a command, or something to answer. The answer is written while it is
  // made, until `interrupted` says so. False: it was the command to end. An Error says what is
  // wrong with the line.
  bool take(const std::string& line, std::ostream& out, const std::function<bool()>& interrupted);

 private:
  bool command(const std::string& line, std::ostream& out);
  void set(const std::string& name, const std::string& value);
  void answer(std::ostream& out, const std::function<bool()>& interrupted);
  std::string messages() const;

  const ServedModel& model_;
  Engine& engine_;
  ConversationOptions options_;
  PromptEncoder encoder_;
  std::vector<std::pair<std::string, std::string>> said_;  // role, text
};

}  // namespace bloomery
