// Loads the initial weights of a run that come from another model.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nn/model_options.h"
#include "zero/parameter_store.h"

namespace bloomery {

class QuantizedWeights;

// Where a model's weights go.
struct ModelMemory {
  Stream& stream;
  ParameterStore& store;
  QuantizedWeights* quantized = nullptr;  // those that the store does not have; null: none
};

// The weights of a model in any form that we read, rounded as the store's; an Error says how it
// differs from `model`, whose parameters the store has. An adapter that the folder does not have
// stays as it is.
void load_model(const ModelMemory& memory, const ModelOptions& model,
                const std::filesystem::path& folder);

// The adapter in a folder of PEFT's, which is for the model in `base`.
void load_adapter(const ModelMemory& memory, const std::filesystem::path& base,
                  const std::filesystem::path& folder);

// The same of a model of the family that `model` starts from (Family::starts_from), for every
// parameter that has its like there. Those without, as projections, start alike in all towers. Of a
// model with a task's head the model is one of the same family; what it lacks stays as it is, and
// is told.
std::vector<std::string> load_start(const ModelMemory& memory, const ModelOptions& model,
                                    std::uint64_t seed, const std::filesystem::path& folder);

// Numbers of the host to a tensor of any dtype. The bytes stay until the stream is synchronized.
void put(Stream& stream, DType dtype, std::span<const std::byte> bytes, const Tensor& to);

}  // namespace bloomery
