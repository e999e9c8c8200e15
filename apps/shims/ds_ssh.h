// DeepSpeed's ds_ssh: a shell command on every machine of a hostfile.
#pragma once

#include "apps/common/command.h"
#include "comm/start/start.h"

namespace bloomery {

// `ds_ssh [-f HOSTFILE] COMMAND...`. As with DeepSpeed two lines come first, which scripts subtract
// when they count GPUs, and every line of output starts with its machine. Without a hostfile the
// command runs here. Returns the exit code.
int ds_ssh(const Arguments& arguments, const Variables& variables);

}  // namespace bloomery
