// The decoders: GPT, Llama, Mistral, Qwen, Gemma, NeoX are one list of blocks with different
// options. Models of other kinds that are such a list have a head of their own.
#pragma once

#include <functional>

#include "models/model.h"
#include "parallel/vocab_embedding.h"

namespace bloomery {

int num_decoder_blocks(const ModelOptions& options);
Blocks decoder_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice);

// The same with another head, made where the slice has it; `weight` is that of the output.
using MakeHead = std::function<std::unique_ptr<Block>(std::shared_ptr<Parameter> weight,
                                                      std::int64_t first_token)>;
Blocks stacked_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice,
                      const MakeHead& make_head);

}  // namespace bloomery
