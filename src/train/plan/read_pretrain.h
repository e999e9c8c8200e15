// From arguments, environment and a DeepSpeed configuration to options without contradictions.
//
//   PretrainOptions options = pretrain_defaults(arguments);
//   OptionTable table;
//   describe(table, options);
//   const std::vector<std::string> notes = read_pretrain(table, options, arguments, environment);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// What counts besides the arguments.
struct Environment {
  std::optional<std::string> model_size_key;  // MODEL_SIZE_KEY, unless --model-size is given
  int processes = 1;                          // that a launcher started together
};
Environment read_environment(int processes);

// Sets the options and returns one line for each thing that the user should know. Everything wrong
// is thrown as one Error. Of files only DeepSpeed's configuration
// and, where the model comes from there, the record in --load are read.
//
// With --deepspeed, loss scale and clipping come from the configuration, and what it leaves out
// takes DeepSpeed's defaults, as there: without gradient_clipping nothing is clipped.
std::vector<std::string> read_pretrain(OptionTable& table, PretrainOptions& options,
                                       const std::vector<std::string>& arguments,
                                       const Environment& environment);

// What contradicts or lacks what, in options that were read.
std::vector<std::string> problems(const PretrainOptions& options);

// Why a run cannot start from --load: no model is there, and it is not the folder of --save, where
// a first run finds none. Empty: it can.
std::string missing_load(const CheckpointFlags& flags);

}  // namespace bloomery
