// The decoders: GPT, Llama, Qwen2, NeoX are one list of blocks with different options.
#pragma once

#include "models/model.h"

namespace bloomery {

int num_decoder_blocks(const ModelOptions& options);
Blocks decoder_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice);

}  // namespace bloomery
