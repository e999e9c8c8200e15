#include "apps/data/corpus_command.h"

#include <iostream>

#include "base/stop_signals.h"

namespace bloomery {

LineCaller line_caller() {
  return {.messages = messages(), .terminal = messages_on_terminal(), .go_on = [] {
            return !StopSignals::came();
          }};
}

std::vector<std::string> one_key(const LineOptions& options) {
  if (options.json_keys.size() == 1) return {};
  return {"--json-keys: give one key, the key of the text"};
}

int stopped_by_signal() {
  std::cerr << "bloomery: stopped by " << signal_name(StopSignals::signal())
            << "; run the same command again to continue" << std::endl;
  return StopSignals::exit_code();
}

void log_finished(const std::string& output) {
  messages() << output << " is finished already; --overwrite starts over" << std::endl;
}

}  // namespace bloomery
