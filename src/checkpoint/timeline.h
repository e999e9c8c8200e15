// Whose checkpoints a --save folder holds. The steps of a folder belong to one line of training: a
// run starts it in a folder without checkpoints, or goes on from the newest one there. Anything
// else would mix two lines, and what is newest, or goes first when room is needed, would be by
// chance.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "checkpoint/folder.h"

namespace bloomery {

inline constexpr const char* kSaveLock = ".bloomery.lock";  // of a --save folder
inline constexpr std::int64_t kNoStep = -1;

// The step of a --save folder that a run which starts from `start` goes on from; kNoStep: of none,
// because it starts from nothing or from a checkpoint that is elsewhere.
std::int64_t own_step(const std::filesystem::path& save, const CheckpointReader* start);

// An Error when the folder holds checkpoints behind `own`: they belong to another line.
void refuse_later_steps(const std::filesystem::path& save, std::int64_t own);

// The same of a run that will be told to load `load` and go on (empty: it starts anew), as far as
// names tell, with nothing opened. What is wrong; empty: nothing.
std::string foreseen_refusal(const std::filesystem::path& save, const std::filesystem::path& load);

// Moves the checkpoints behind `own` to SAVE/earlier-K, which is a --save folder itself, with the
// other files of the folder (a copy of them when the line goes on here). Says so. Nothing to do
// when there is no such checkpoint. An Error when another process saves there.
void set_later_steps_aside(const std::filesystem::path& save, std::int64_t own, const Log& log);

// Moves one checkpoint in the same way; where it is then.
std::filesystem::path set_step_aside(const CheckpointEntry& entry);

}  // namespace bloomery
