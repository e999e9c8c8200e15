#include "apps/chat/chat.h"

#include <unistd.h>

#include <csignal>

#include "apps/chat/conversation.h"
#include "apps/common/command_line.h"
#include "apps/common/model_ranks.h"
#include "apps/generate/line_editor.h"
#include "base/terminal.h"

namespace bloomery {
namespace {

struct ChatCommand {
  ModelChoice model;
  RankChoice ranks;
  std::string chat_template;
  ConversationOptions conversation;
  std::int64_t seed = 1234;
  std::optional<std::int64_t> max_length;
};

void describe(OptionTable& t, ChatCommand& o) {
  SamplingOptions& s = o.conversation.sampling;
  t.section("conversation");
  t.add("system", o.conversation.system, "What the model is told first.");
  t.add("chat-template", o.chat_template, "A Jinja file instead of the model's own chat template.");
  t.add("max-length", o.max_length,
        "Tokens of the conversation; by default what the model was trained for, 8192 at "
        "most.",
        at_least(2));
  t.section("choice of tokens");
  t.add("max-new-tokens", o.conversation.max_new_tokens,
        "Of an answer; 0: as many as there is room for.", at_least(0));
  t.add("temperature", s.temperature, "Logits are divided by it; 0 is greedy.", at_least(0));
  t.add("top-k", s.top_k, "Only the k likeliest tokens; 0: all.", at_least(0));
  t.add("top-p", s.top_p, "Only the likeliest tokens with this probability together; 0: all.",
        between(0, 1));
  t.add("min-p", s.min_p, "Only tokens this likely, beside the likeliest; 0: all.", between(0, 1));
  t.add("repetition-penalty", s.repetition_penalty, "Of tokens that occurred; 1: no penalty.",
        above(0));
  t.add("seed", o.seed, "Answers depend on it and on their number.", at_least(0));
  describe(t, o.ranks);
  describe(t, o.model);
}

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
  command.model.require_agreement(model);
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

int run_chat(const Arguments& arguments, const ModelRanks& ranks, std::ostream& out) {
  ChatCommand command;
  command.conversation.sampling.temperature = 0.8;
  command.conversation.sampling.top_p = 0.95;
  OptionTable table;
  describe(table, command);
  if (!read_options(table, arguments, out,
                    "usage: bloomery chat --load DIR [OPTIONS]\n\nA conversation with a model in "
                    "the terminal, by its chat template; /help lists commands.\n",
                    [&] { return contradictions(command.ranks); })) {
    return 0;
  }
  command.conversation.sampling.seed = static_cast<std::uint64_t>(command.seed);
  const Interrupts interrupts;
  return ranks.with_first(command.model, command.ranks, [&](LoadedModel& model) {
    converse(command, model, interrupts, out);
    return 0;
  });
}

}  // namespace

int chat(const Arguments& arguments, std::ostream& out) {
  return as_started(out, [&](const ModelRanks& ranks, std::ostream& own_out) {
    return run_chat(arguments, ranks, own_out);
  });
}

}  // namespace bloomery
