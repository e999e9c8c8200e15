// What a launch gives to its ranks by their environment. It goes to other machines by the standard
// input of the launches there: command lines are shown to everybody.
#pragma once

#include <string>

namespace bloomery {

// The variables that go to other machines, as take_variables() reads them.
std::string carried_variables();

// Sets what another launch wrote, and reads no further.
void take_variables(int descriptor);

// Sets BLOOMERY_SECRET, by which the ranks know each other, unless it is set.
void give_secret();

// Whether a shell here would find a program of this name.
bool is_program(const std::string& name);

}  // namespace bloomery
