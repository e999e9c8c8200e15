// docs/options.md: what each flag of Megatron-DeepSpeed does here, written from the option table.
#pragma once

#include <string>

#include "config/option_table.h"

namespace bloomery {

// `flags` holds one flag per line under `## title` lines (tests/golden/megatron_flags.txt). A flag
// that the table does not know is an Error that names it.
// `finetune` is the table of that command: what it has beside the other's options is a section.
std::string options_page(const OptionTable& table, const std::string& flags,
                         const OptionTable& finetune);

}  // namespace bloomery
