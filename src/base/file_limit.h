// How many files and sockets this process may hold open.
#pragma once

namespace bloomery {

// As many as the system lets this user have (RLIMIT_NOFILE), instead of the usual 1,024: a start of
// many ranks needs a socket for each, and a checkpoint of theirs a file.
void raise_file_limit();

}  // namespace bloomery
