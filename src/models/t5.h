// Encoders and decoders with attention between them: what T5 has beyond the options of all models.
#pragma once

#include "models/model.h"

namespace bloomery {

struct T5Options {
  std::int64_t decoder_layers = 0;  // 0: as many as the encoder has
  bool cross_mask = true;           // the decoder does not see padding of the encoder's sequences
  bool head_bias = true;            // of the logits
  bool head_scale = false;          // the head multiplies by 1 / sqrt(hidden size) first
  bool dropout_after_norm = false;  // of the output of each stack
};

std::int64_t num_t5_decoder_layers(const ModelOptions& options);

// The encoder's embedding, its layers, its end; the decoder's embedding, its layers, the head.
int num_t5_blocks(const ModelOptions& options);
int t5_decoder_begin(const ModelOptions& options);
Blocks t5_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice);

}  // namespace bloomery
