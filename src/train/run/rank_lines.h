// Lines that say something of each rank which holds a part of the model: of the first
// data-parallel replica. Collective over all ranks; the first one's log gets the lines.
#pragma once

#include "train/run/run_log.h"

namespace bloomery {

void log_parameters(Rank& rank, RunLog& log);
void log_state(Rank& rank, RunLog& log);
void log_offload(Rank& rank, RunLog& log);  // what lies beside the device, if anything does
// Of this rank's layers, if there are any: a warning.
void log_layers_without_fp8(Rank& rank, RunLog& log);
void log_memory(Rank& rank, std::int64_t iteration, RunLog& log);

}  // namespace bloomery
