// `bloomery pretrain` from options to the end of the run: everything that comes before the ranks
// start, and the ranks.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>

#include "config/option_table.h"
#include "device/device.h"
#include "train/run/trainer.h"

namespace bloomery {

class InstructData;
class TaskData;

struct PretrainSetting {
  // Of all processes that were started together, each of them a rank. Null: this one alone, which
  // runs --ranks-as-threads ranks.
  std::unique_ptr<Communicator> world;
  DeviceOptions device;
  std::shared_ptr<const InstructData> instructions = nullptr;  // of `finetune`
  std::shared_ptr<const TaskData> task = nullptr;              // of `finetune --task`
  std::function<bool()> stop_requested;                        // asked by every rank in every step
  std::ostream& out;                 // Megatron's lines, of the first rank
  std::vector<std::string> command;  // as typed, for the run's folder
};

// Where a report of a run that hung goes: beside its other files, or to the working folder (empty).
std::filesystem::path report_folder(const PretrainOptions& options);

// The options were read (read_pretrain.h) from the table. What is done once for all ranks (folders,
// indices of the data, the choice of a checkpoint) the first one does, and the others wait.
RunEnd pretrain(const PretrainOptions& options, const OptionTable& table,
                const std::vector<std::string>& notes, PretrainSetting setting);

}  // namespace bloomery
