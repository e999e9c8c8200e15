// What a launch gives to its ranks by their environment. It goes to other machines by the standard
// input of the launches there: command lines are shown to everybody.
#pragma once

#include <string>
#include <vector>

#include "comm/start/start.h"

namespace bloomery {

// Of NAME=VALUE in lines, as DeepSpeed's .deepspeed_env has them; # starts a comment. `place` names
// the text in errors.
Variables parse_environment(const std::string& text, const std::string& place);

// Those of the file .deepspeed_env (DS_ENV_FILE names another one) in the home folder and, counting
// more, in the current one.
Variables environment_of_files();

// Names of the variables that go to other machines: by their first letters, and these.
std::vector<std::string> carried_names(const Variables& further);

// Those variables, as take_variables() reads them.
std::string carried_variables(const Variables& further);

// Sets what another launch wrote, and reads no further.
void take_variables(int descriptor);

// Sets BLOOMERY_SECRET, by which the ranks know each other, unless it is set.
void give_secret();

// Whether a shell here would find a program of this name.
bool is_program(const std::string& name);

}  // namespace bloomery
