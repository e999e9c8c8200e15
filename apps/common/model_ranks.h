// A model on one rank or on several that divide it: threads of this process, or the processes that
// a launcher started together.
#pragma once

#include <functional>
#include <optional>

#include "apps/common/model_choice.h"
#include "apps/common/processes.h"

namespace bloomery {

struct RankChoice {
  std::int64_t tensor = 1;
  std::optional<std::int64_t> threads;  // where given, as many
  bool data_parallel = false;           // of the command: ranks beyond a whole model share its work
};

void describe(OptionTable& table, RankChoice& choice);
std::vector<std::string> contradictions(const RankChoice& choice);

// Which model a command runs, and on which ranks.
struct ModelStart {
  ModelChoice model;
  RankChoice ranks;
};

// What this process is among those that were started together.
class ModelRanks {
 public:
  ModelRanks() = default;  // alone
  ModelRanks(const StartFacts& facts, RankProcess& process) : facts_(facts), process_(&process) {}

  bool is_first() const { return facts_.rank == 0; }
  // Loads the model, which must generate text, and calls `body` on the first rank with the first
  // rank's part, whose decoders are those of the whole model. An Error on any rank ends all.
  int with_first(const ModelStart& start, const std::function<int(LoadedModel&)>& body) const;
  // Loads any model and calls `body` on all ranks, which do all passes together; only the first may
  // write anything.
  int with_all(const ModelStart& start,
               const std::function<int(LoadedModel&, bool first)>& body) const;

 private:
  int run_threads(const LoadOptions& options, int ranks,
                  const std::function<int(LoadedModel&, bool first)>& body) const;
  int run_process(const ModelStart& start,
                  const std::function<int(LoadedModel&, bool first)>& body) const;

  StartFacts facts_;
  RankProcess* process_ = nullptr;  // null: alone
};

// Runs a command, from its arguments on, as what this process was started as. `out` is where the
// first rank writes; of the other processes nothing is heard.
int as_started(std::ostream& out,
               const std::function<int(const ModelRanks& ranks, std::ostream& out)>& command);

}  // namespace bloomery
