// Names for what is not finished, which tell who writes it: another process can then say whether
// that one may still be at work.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace bloomery {

// NAME.tmp-PROCESS-TOKEN-COUNT-MACHINE beside `path`. No other writer has the same: machines share
// folders, containers have equal process numbers, and a process has several threads.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// NAME of a name that temporary_name() made; empty for every other.
std::string_view final_name_of(std::string_view name);

// Whether a temporary name's writer has surely ended: a process of this machine that is no more.
// One of another machine may be alive.
bool writer_has_ended(std::string_view name);

// Whether a temporary name's writer is of this machine.
bool is_of_this_machine(std::string_view name);

// The name of this machine, in characters that file names can have.
std::string machine_name();

// "process 12 on node7": this one.
std::string this_process();

}  // namespace bloomery
