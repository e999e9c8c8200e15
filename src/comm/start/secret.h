// Where the ranks of a start on one machine get the secret from that keeps everybody else out, if
// their launcher gives none.
#pragma once

#include <filesystem>

#include "comm/tcp/hello.h"

namespace bloomery {

// This user's own folder for that, among the temporary files of this machine.
std::filesystem::path secrets_folder();

// Of the start whose first rank listens at `port`, in a file of `folder` that the first rank to
// come makes. An Error if somebody else may read or write there.
Secret shared_secret(const std::filesystem::path& folder, int port);
void forget_secret(const std::filesystem::path& folder, int port);  // when all have come

}  // namespace bloomery
