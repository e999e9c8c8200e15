// `pretrain --dry-run`: what would happen on a device of a kind, without one and without reading
// data.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "config/option_table.h"
#include "train/plan/planned_rank.h"

namespace bloomery {

// Size of the vocabulary as far as the options and the tokenizer's own files tell; `assumed` when
// there are no files to ask and the number is only what the type usually has.
struct VocabularySize {
  std::int64_t size = 0;
  bool assumed = false;
};
VocabularySize vocabulary_size(const TokenizerOptions& options);

// One line for each file or folder that is named and does not exist.
std::vector<std::string> missing_paths(const PretrainOptions& options);

// The plan and the memory of a rank: lines for people, and one JSON object.
std::string to_text(const Plan& plan, const PlannedMemory& memory);
std::string to_json(const Plan& plan, const PlannedMemory& memory);

// The plan first, then warnings, notes and options; or one JSON object with --json.
void print_dry_run(const OptionTable& table, const PretrainOptions& options,
                   const std::vector<std::string>& notes, DeviceKind device, std::ostream& out);

}  // namespace bloomery
