// A model, or the slice of one that a pipeline stage holds: blocks from the embedding to the head.
#pragma once

#include <optional>
#include <vector>

#include "comm/mesh.h"
#include "nn/block.h"
#include "nn/model_options.h"

namespace bloomery {

// Blocks [begin, end) of a model: 0 is the embedding, num_blocks - 1 the head.
struct BlockRange {
  int begin = 0, end = 0;
};

class Model {
 public:
  // The whole model, or the blocks of `slice`. `dtype` is what activations and parameters are
  // computed in. An Error lists everything that makes the options impossible. The mesh must outlive
  // the model. Beside adapters all other parameters are frozen.
  Model(const ModelOptions& options, const Mesh& mesh, DType dtype,
        std::optional<BlockRange> slice = {});

  // Runs the blocks. The first block of a model ignores the incoming state and reads the batch. The
  // head reports losses to the context's metrics if the batch has labels, else it leaves logits in
  // the stream (of batch.output_rows only, where they are given).
  State forward(Context& context, State state = {}, const RecomputeOptions& recompute = {}) const;

  // Each distinct parameter once, in model order. Its `uses` are the blocks that list it.
  const ParameterList& parameters() const { return parameters_; }
  const ModelOptions& options() const { return options_; }  // completed
  DType dtype() const { return dtype_; }
  const Blocks& blocks() const { return blocks_; }
  bool is_first() const { return slice_.begin == 0; }
  bool is_last() const { return slice_.end == num_blocks(options_); }

  // What the first block of this slice gets from the one before it for such a batch, settled.
  StateShape input_shape(const Batch& batch) const;

  static int num_blocks(const ModelOptions& options);
  // The first block of a decoder that follows an encoder; 0: there is no encoder.
  static int decoder_begin(const ModelOptions& options);

 private:
  ModelOptions options_;
  const Mesh* mesh_;
  DType dtype_;
  BlockRange slice_;
  Blocks blocks_;
  ParameterList parameters_;
};

// Of a model with an encoder: the first pipeline stage of its decoder. What the layout says or,
// where it says nothing, such that all stages have about equally many layers.
int decoder_stage(const ModelOptions& options, const Layout& layout);

// Of the whole model, padding not counted.
std::int64_t num_parameters(const ModelOptions& options);
// The most tokens that a sequence may have; none for models without a table of positions.
std::optional<std::int64_t> max_length(const ModelOptions& options);

}  // namespace bloomery
