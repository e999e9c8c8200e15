#include "apps/chat/conversation.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace bloomery {
namespace {

constexpr const char* kHelp =
    "/new            start a new conversation\n/undo           remove the last question and its "
    "answer\n/system TEXT    set the system message; without TEXT remove it\n/set NAME VALUE set "
    "temperature, top-k, top-p, min-p, repetition-penalty,\n                seed or "
    "max-new-tokens\n/exit           exit; so does Ctrl-D. Ctrl-C stops an answer\n";

// Writes an answer while it grows.
class Writer final : public EngineListener {
 public:
  Writer(std::ostream& out, const std::function<bool()>& interrupted)
      : out_(out), interrupted_(interrupted) {}
  bool wanted() const override {
    stopped_ = stopped_ || interrupted_();
    return !stopped_;
  }
  void on_token(std::int64_t, const ScoredToken&, const std::string& text) override { add(text); }
  void on_end(std::int64_t, Finish, const std::string& text) override { add(text); }
  void on_dropped() override {}
  void on_failure(const std::string& message) override { failure = message; }

  std::string text, failure;

 private:
  void add(const std::string& piece) {
    text += piece;
    out_ << piece << std::flush;
  }
  std::ostream& out_;
  const std::function<bool()>& interrupted_;
  mutable bool stopped_ = false;
};

}  // namespace

Conversation::Conversation(const ServedModel& model, Engine& engine,
                           const ConversationOptions& options)
    : model_(model),
      engine_(engine),
      options_(options),
      encoder_(model, engine.options().capacity) {
  check(model.chat() != nullptr, model.name(),
        " has no chat template. A model that only continues text is for `bloomery generate`; "
        "`bloomery finetune` on conversations makes a chat model. --chat-template FILE gives one");
}

bool Conversation::take(const std::string& line, std::ostream& out,
                        const std::function<bool()>& interrupted) {
  if (line.starts_with('/')) {
    return command(line, out);
  }
  if (line.find_first_not_of(" \t") == std::string::npos) {
    return true;
  }
  said_.emplace_back("user", line);
  try {
    answer(out, interrupted);
  } catch (const Error&) {
    said_.pop_back();
    throw;
  }
  return true;
}

bool Conversation::command(const std::string& line, std::ostream& out) {
  const std::size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "/exit" || name == "/quit") {
    return false;
  }
  if (name == "/new") {
    said_.clear();
  } else if (name == "/undo") {
    said_.resize(said_.size() - std::min<std::size_t>(2, said_.size()));
  } else if (name == "/system") {
    options_.system = rest;
  } else if (name == "/set") {
    const std::size_t gap = rest.find(' ');
    set(rest.substr(0, gap), gap == std::string::npos ? "" : rest.substr(gap + 1));
  } else {
    check(name == "/help", name, " is not a command; /help lists the commands");
    out << kHelp;
  }
  return true;
}

void Conversation::set(const std::string& name, const std::string& value) {
  double number = 0;
  const char* const last = value.data() + value.size();
  const auto [end, status] = std::from_chars(value.data(), last, number);
  check(status == std::errc() && end == last, "/set ", name, " needs a number, not '", value, "'");
  SamplingOptions& s = options_.sampling;
  const auto within = [&](double least, double most) {
    check(number >= least && number <= most, "/set ", name, " must be from ", least, " to ", most);
    return number;
  };
  if (name == "temperature") {
    s.temperature = within(0, 100);
  } else if (name == "top-p") {
    s.top_p = within(0, 1);
  } else if (name == "min-p") {
    s.min_p = within(0, 1);
  } else if (name == "repetition-penalty") {
    s.repetition_penalty = within(1e-3, 1e3);
  } else if (name == "top-k") {
    s.top_k = static_cast<std::int64_t>(within(0, 1e9));
  } else if (name == "seed") {
    s.seed = static_cast<std::uint64_t>(within(0, 9e15));
  } else {
    check(name == "max-new-tokens", "/set ", name, " is not a setting; /help lists the settings");
    options_.max_new_tokens = static_cast<std::int64_t>(within(0, 1e9));
  }
}

std::string Conversation::messages() const {
  auto list = nlohmann::ordered_json::array();
  if (!options_.system.empty()) {
    list.push_back({{"role", "system"}, {"content", options_.system}});
  }
  for (const auto& [role, text] : said_) {
    list.push_back({{"role", role}, {"content", text}});
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Each answer draws with a number of its own.
void Conversation::answer(std::ostream& out, const std::function<bool()>& interrupted) {
  EngineRequest request{.prompt = encoder_.encode_chat(messages(), "null"),
                        .prompt_number = std::ssize(said_) / 2,
                        .sampling = options_.sampling,
                        .eos_ids = model_.eos_ids(),
                        .skip_special = true};
  const std::int64_t room = engine_.options().capacity - std::ssize(request.prompt);
  check(room >= 1, "the conversation exceeds the context of ", engine_.options().capacity,
        " tokens: /new starts another, /undo removes the last question");
  request.max_tokens =
      options_.max_new_tokens == 0 ? room : std::min(room, options_.max_new_tokens);
  const auto writer = std::make_shared<Writer>(out, interrupted);
  engine_.submit(std::move(request), writer);
  while (engine_.step()) {
  }
  out << std::endl;
  check(writer->failure.empty(), writer->failure);
  said_.emplace_back("assistant", writer->text);
}

}  // namespace bloomery
