// ZeRO-3's gathers: values that are stored as shards are whole while a block is in use, in two
// buffers that take turns, so that the next block arrives while the one before it computes.
#pragma once

#include <array>
#include <list>
#include <map>
#include <vector>

#include "zero/gatherer.h"
#include "zero/prefetch_order.h"

namespace bloomery {

class GatheredBlocks {
 public:
  using Buckets = std::vector<std::size_t>;  // in rising order

  // `shards`: of all buckets, this rank's, which lie there: on the device or on the host.
  // `largest`: elements of the largest block.
  GatheredBlocks(Stream& stream, Gatherer& gatherer, const std::vector<Bucket>& buckets,
                 Tensor shards, Placement placement, std::int64_t largest);

  // A pass begins whose order may be that of the last of its kind.
  void begin(Pass pass) { order_.begin(pass); }
  // The values of these buckets, none of them in use, whole until each was given back. Beside the
  // two buffers memory is taken only if both are in use.
  std::vector<Tensor> take(const Buckets& buckets);
  void give_back(std::size_t bucket);
  // The shards were written: what is whole is old. A training pass comes next.
  void renew();

  std::size_t bytes() const { return shared_[0].memory.bytes() + shared_[1].memory.bytes(); }

 private:
  struct Buffer {
    Tensor memory;
    int block = kNone;               // what is there or arrives, also after its use
    int num_used = 0;                // buckets
    std::shared_ptr<Event> arrived;  // null: the computation has waited for it
  };
  static constexpr int kNone = -1;

  int number_of(const Buckets& block);
  std::int64_t size_of_block(int block) const;
  Tensor part(const Buffer& buffer, std::size_t place_in_block) const;
  Buffer& buffer_for(int block);
  void load(Buffer& buffer, int block);
  void look_ahead(const Buffer* current);

  Stream* stream_;
  Gatherer* gatherer_;
  const std::vector<Bucket>* buckets_;
  Tensor shards_;
  Placement placement_;  // of the shards
  std::array<Buffer, 2> shared_;
  std::list<Buffer> further_;  // of blocks that are used while both are in use
  std::size_t latest_ = 0;     // of the two: the one that was used last
  std::vector<Buckets> blocks_;
  std::map<Buckets, int> numbers_;          // places in it
  std::map<std::size_t, Buffer*> holders_;  // of the buckets in use
  PrefetchOrder order_;
};

}  // namespace bloomery
