// The start that generate, chat, serve and evaluate share: options, ranks and the model on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/common/command_line.h"
#include "apps/common/model_ranks.h"

namespace bloomery {

// Reads the options of such a command. `problems` are rules across its own options. False when help
// was printed instead: the command is done.
bool read_model_options(OptionTable& table, ModelStart& start, const Arguments& arguments,
                        std::ostream& out, const std::string& usage,
                        const std::function<std::vector<std::string>()>& problems = {});

// Reads Options, a ModelStart with what describe(table, options) adds, for which
// contradictions(table, options) names rules; then calls body(options, ranks, out), on the rank as
// which this process was started.
template <class Options, class Body>
int run_model_command(const Arguments& arguments, std::ostream& out, const char* usage,
                      const Options& defaults, const Body& body) {
  return as_started(out, [&](const ModelRanks& ranks, std::ostream& own_out) {
    Options options = defaults;
    OptionTable table;
    describe(table, options);
    return read_model_options(table, options, arguments, own_out, usage,
                              [&] { return contradictions(table, options); })
               ? body(options, ranks, own_out)
               : 0;
  });
}

}  // namespace bloomery
