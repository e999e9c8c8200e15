#include <algorithm>
#include <array>

#include "apps/bloomery.h"
#include "apps/launch/starter.h"
#include "checkpoint/folder.h"

namespace bloomery {

Arguments resuming(const Arguments& command) {
  const std::string first = command.empty() ? "" : command[0];
  const bool trains = first.find("pretrain") != first.npos || first.find("finetune") != first.npos;
  if (!trains || !is_bloomery_command(command)) {
    return command;
  }
  std::string save;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    // Where a checkpoint was chosen the choice stays.
    if (word.starts_with("--load-tag") || word.starts_with("--load_tag") || word == "--fork") {
      return command;
    }
    if (word.starts_with("--save=")) {
      save = word.substr(word.find('=') + 1);
    } else if (word == "--save" && i + 1 < command.size()) {
      save = command[i + 1];
    }
  }
  if (save.empty() || list_checkpoints(save).empty()) {
    return command;
  }
  Arguments words = command;
  words.insert(words.end(), {"--load", save, "--no-finetune", "--no-reset-iteration"});
  return words;
}

}  // namespace bloomery
