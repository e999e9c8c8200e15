// What a run was asked to do, kept in its folder so that it can be asked again:
//   options.json    the options that were given; `bloomery pretrain --config SAVE/options.json`
//   arguments.txt   the values of all options, as Megatron prints them at the start of a run
//   commands.jsonl  a line for every start: time, version, folder, command line and those options
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/option_table.h"

namespace bloomery {

inline constexpr const char* kArgumentsFile = "arguments.txt";

// A failure is a warning: a run does not end for it.
void store_command(const std::filesystem::path& folder, const OptionTable& table,
                   const std::vector<std::string>& command, const Log& log);

}  // namespace bloomery
