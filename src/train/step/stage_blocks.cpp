#include "train/step/stage_blocks.h"

#include "base/error.h"

namespace bloomery {
namespace {

// An equal share of the layers among `blocks`; the first and the last block, which are none, go
// with the first and the last part.
BlockRange part_of(BlockRange blocks, int part, int parts) {
  const int layers = blocks.end - blocks.begin - 2;
  check(parts == 1 || parts <= layers, parts, " parts of a pipeline need as many layers, not ",
        layers);
  const auto share = [&](int p) { return blocks.begin + 1 + layers * p / parts; };
  return {part == 0 ? blocks.begin : share(part), part == parts - 1 ? blocks.end : share(part + 1)};
}

}  // namespace

BlockRange chunk_blocks(const ModelOptions& options, const Mesh& mesh, const Layout& layout,
                        int chunk) {
  const int stages = mesh.degree(Axis::pipeline), stage = mesh.coordinate(Axis::pipeline);
  const int blocks = Model::num_blocks(options), decoder = Model::decoder_begin(options);
  if (decoder == 0 || stages == 1) {
    return part_of({0, blocks}, chunk * stages + stage, stages * layout.chunks);
  }
  check(layout.chunks == 1, "stages of encoders and decoders have one chunk each");
  const int split = decoder_stage(options, layout);
  return stage < split ? part_of({0, decoder}, stage, split)
                       : part_of({decoder, blocks}, stage - split, stages - split);
}

}  // namespace bloomery
