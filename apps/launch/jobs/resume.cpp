#include "apps/launch/jobs/resume.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

// The last value of a flag; none: it is not there.
std::optional<std::string> value_of(const Arguments& command, const std::string& name) {
  std::optional<std::string> value;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::size_t equals = command[i].find('=');
    if (!command[i].starts_with("--") || canonical_option(command[i].substr(0, equals)) != name) {
      continue;
    }
    value = equals != std::string::npos ? command[i].substr(equals + 1)
            : i + 1 < command.size()    ? command[i + 1]
                                        : std::string();
  }
  return value;
}

}  // namespace

bool trains(const Arguments& command) {
  std::string name = std::filesystem::path(command.at(0)).stem().string();
  std::ranges::replace(name, '-', '_');
  return name == "pretrain" || name == "finetune" || name.starts_with("pretrain_") ||
         name == "finetune_llama";
}

Resume resume_of(const Arguments& command) {
  if (!trains(command)) {
    return {};
  }
  const std::optional<std::string> save = value_of(command, "--save");
  if (!save && value_of(command, "--config")) {
    return {};  // the file may say it
  }
  check(save && !save->empty(), "a job that runs again goes on from its checkpoints, but '",
        command[0], "' saves none: add --save FOLDER --load FOLDER, or give --no-requeue");
  for (const char* const flag : {"--finetune", "--reset-iteration", "--no-load-optim"}) {
    check(!value_of(command, flag), "with ", flag,
          " a job that runs again would start from the beginning: leave it out, or give "
          "--no-requeue");
  }
  return {*save, value_of(command, "--load") != save};
}

}  // namespace bloomery
