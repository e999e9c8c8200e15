// Time limits as schedulers write them.
#pragma once

#include <string>

namespace bloomery {

// Seconds of a limit in Slurm's forms; an Error for anything else.
int seconds_of_limit(const std::string& text);
// "26:03:04": hours, minutes, seconds.
std::string clock_text(int seconds);

}  // namespace bloomery
