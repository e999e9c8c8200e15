// Copies of data on the local disks of the nodes.
#pragma once

#include <string>
#include <vector>

#include "apps/launch/jobs/job.h"

namespace bloomery {

// The paths of --stage. An Error for one that the command does not name, or two of one name.
std::vector<std::string> staged_paths(const JobOptions& options, const Arguments& command);

// The words of the command as shell text; those below a staged path name the copy in `folder`,
// which is shell text too.
std::vector<std::string> shell_words(const Job& job, const std::string& folder);
// As the words themselves.
std::vector<std::string> plain_words(const Job& job, const std::string& folder);

// A command for bash -c that copies its arguments into the folder $0; a prefix of a corpus stands
// for its .bin and .idx.
inline constexpr const char* kCopy =
    "mkdir -p \"$0\" && for path; do\n"
    "    if [ -e \"$path\" ]; then cp -rL -- \"$path\" \"$0\"\n"
    "    else cp -L -- \"$path.bin\" \"$path.idx\" \"$0\"; fi || exit 1\n"
    "  done";

}  // namespace bloomery
