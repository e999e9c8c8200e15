// The command lines of the launchers `deepspeed` and `torchrun`, read as far as to find the program
// that they start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/command.h"

namespace bloomery {

enum class LauncherKind { deepspeed, torchrun };

struct LauncherFlag {
  std::string name;                  // with two dashes and underscores: "--num_gpus"
  std::optional<std::string> value;  // none: the flag stands alone
};

struct LauncherCall {
  LauncherKind kind = LauncherKind::deepspeed;
  std::vector<LauncherFlag> flags;
  std::string program;  // empty: none is named
  bool module = false;  // the program is the name of a Python module
  Arguments arguments;  // of the program

  const LauncherFlag* find(const std::string& name) const;  // the last one
  void remove(const std::string& name);
};

LauncherCall read_launcher_call(LauncherKind kind, const Arguments& words);

// The flags as words.
Arguments flag_words(const LauncherCall& call);

}  // namespace bloomery
