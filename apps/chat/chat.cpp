#include "apps/chat/chat.h"

#include <unistd.h>

#include <csignal>

#include "apps/chat/conversation.h"
#include "apps/common/model_command.h"
#include "apps/generate/line_editor.h"
#include "base/terminal.h"

namespace bloomery {
namespace {

struct ChatCommand : ModelStart {
  std::string chat_template;
  ConversationOptions conversation;
  std::int64_t seed = 1234;
  std::optional<std::int64_t> max_length;
};

void describe(OptionTable& t, ChatCommand& o) {
  SamplingOptions& s = o.conversation.sampling;
  t.section("conversation");
  t.add("system", o.conversation.system, "System message.");
  t.add("chat-template", o.chat_template, "Chat template, a Jinja file; none: the model's own.");
  t.add("max-length", o.max_length,
        "Maximum context length in tokens; none: the model's, up to 8192.", at_least(2));
  t.section("sampling");
  t.add("max-new-tokens", o.conversation.max_new_tokens,
        "Maximum new tokens per answer; 0: up to the context length.", at_least(0));
  t.add("temperature", s.temperature, "Sampling temperature; 0: greedy decoding.", at_least(0));
  t.add("top-k", s.top_k, "Sample from the k likeliest tokens; 0: all.", at_least(0));
  t.add("top-p", s.top_p,
        "Nucleus sampling: the likeliest tokens whose probabilities sum to p; 0: all.",
        between(0, 1));
  t.add("min-p", s.min_p, "Minimum probability of a token, relative to the likeliest; 0: all.",
        between(0, 1));
  t.add("repetition-penalty", s.repetition_penalty, "Repetition penalty; 1: none.", above(0));
  t.add("seed", o.seed, "Random seed of the answers.", at_least(0));
}

std::vector<std::string> contradictions(const OptionTable&, const ChatCommand&) { return {}; }

// Ctrl-C as something that can be asked for. To be made before threads, which must not get it.
class Interrupts {
 public:
  Interrupts() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    if (is_terminal(STDIN_FILENO)) {
      pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    }
  }
  bool came() const {
    const timespec now{};
    return is_terminal(STDIN_FILENO) && sigtimedwait(&signals_, nullptr, &now) == SIGINT;
  }

 private:
  sigset_t signals_{};
};

void converse(const ChatCommand& command, LoadedModel& model, const Interrupts& interrupts,
              std::ostream& out) {
  const ServedModel served(model, model.folder().filename().string(), command.chat_template);
  Engine engine(model.model(), model.stream(), model.mesh(), model.tokenizer(),
                {.num_sequences = 1, .capacity = text_capacity(model, command.max_length)});
  Conversation conversation(served, engine, command.conversation);
  const NextLine next_line = typed_lines("> ");
  while (const std::optional<std::string> line = next_line()) {
    try {
      interrupts.came();  // what was pressed before counts no more
      if (!conversation.take(*line, out, [&] { return interrupts.came(); })) {
        break;
      }
    } catch (const RankFailure&) {  // nobody is left to try again with
      throw;
    } catch (const Error& error) {  // of this line; the next may be better
      Log().error(error.what());
    }
  }
}

constexpr const char* kChatUsage =
    "usage: bloomery chat --load DIR [OPTIONS]\n\n"
    "Talks to a model in the terminal, with its chat template. /help lists the commands of a "
    "conversation.\n\n"
    "example:\n  bloomery chat --load run/tuned\n";

ChatCommand defaults() {
  ChatCommand command;
  command.conversation.sampling.temperature = 0.8;
  command.conversation.sampling.top_p = 0.95;
  return command;
}

int run_chat(ChatCommand& command, const ModelRanks& ranks, std::ostream& out) {
  command.conversation.sampling.seed = static_cast<std::uint64_t>(command.seed);
  const Interrupts interrupts;
  return ranks.with_first(command, [&](LoadedModel& model) {
    converse(command, model, interrupts, out);
    return 0;
  });
}

}  // namespace

int chat(const Arguments& arguments, std::ostream& out) {
  return run_model_command(arguments, out, kChatUsage, defaults(), run_chat);
}

}  // namespace bloomery
