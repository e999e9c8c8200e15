#include "device/overlap.h"

#include "build_config.h"
#include "device/cuda.h"

namespace bloomery {

OverlapLaunches::OverlapLaunches(Stream& stream) : stream_(stream) {
  if constexpr (build::cuda) {
    if (stream.on_cuda() && cuda::can_overlap_launches(stream.device().options().index)) {
      stream.device().service<OverlappingStreams>().all.insert(&stream);
    }
  }
}

OverlapLaunches::~OverlapLaunches() {
  stream_.device().service<OverlappingStreams>().all.erase(&stream_);
}

bool overlaps_launches(const Stream& stream) {
  return stream.device().service<OverlappingStreams>().all.contains(&stream);
}

}  // namespace bloomery
