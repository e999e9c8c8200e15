// Which blocks of a model a stage of the pipeline has.
#pragma once

#include "comm/layout.h"
#include "comm/mesh.h"
#include "models/model.h"

namespace bloomery {

// A chunk of a stage has an equal share of the layers; of a model with an encoder the stages before
// `decoder_stage` have its layers, the others those of the decoder.
BlockRange chunk_blocks(const ModelOptions& options, const Mesh& mesh, const Layout& layout,
                        int chunk);

}  // namespace bloomery
