// A checkpoint of Megatron or DeepSpeed as the source of a model, where the user says how it is to
// be read; open_model reads it as it says itself.
#pragma once

#include <memory>

#include "checkpoint/megatron/foreign.h"
#include "checkpoint/model_source.h"

namespace bloomery {

// The stream must be on the CPU and outlive the source. An Error when the path is of another kind.
std::unique_ptr<ModelSource> open_foreign_model(Stream& stream, const std::filesystem::path& path,
                                                const ForeignReading& how);

}  // namespace bloomery
