// Into which blocks a product on the CPU is cut: rules by shape.
#pragma once

#include <cstdint>
#include <utility>

#include "ops/matmul/choices.h"

namespace bloomery {

using BlockSizes = std::pair<std::int64_t, std::int64_t>;  // rows and columns

// For calls of oneDNN.
BlockSizes onednn_blocks(const MatmulKey& key);
// For our own packed product.
BlockSizes own_blocks(const MatmulKey& key);
// For our own product on the tiles, whose bits do not depend on the blocks.
BlockSizes amx_blocks(const MatmulKey& key, std::int64_t threads);

}  // namespace bloomery
