// Samples cut into several shorter ones, as curricula train on.
#pragma once

#include "samples/host_batch.h"
#include "samples/language_model_dataset.h"

namespace bloomery {

// Rows of `length` tokens, and a label behind them, that samples of `full` tokens are cut into.
std::int64_t reshaped_rows(std::int64_t samples, std::int64_t full, std::int64_t length);

// Rows of language-model samples, DeepSpeed's seqlen_reshape: each sample is cut into as many rows
// as it holds, and behind those of all samples comes a row of each sample's last tokens; `to` has
// as many of them as it has samples. Rows are samples of their own: the j-th of a sample is known
// as the sample + j x 2^40.
void copy_rows(const HostBatch& from, HostBatch& to, const DocumentRules& rules);

}  // namespace bloomery
