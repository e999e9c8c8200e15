#include "zero/gathered_blocks.h"

#include <algorithm>

namespace bloomery {

GatheredBlocks::GatheredBlocks(Stream& stream, Gatherer& gatherer,
                               const std::vector<Bucket>& buckets, Tensor shards,
                               Placement placement, std::int64_t largest)
    : stream_(&stream),
      gatherer_(&gatherer),
      buckets_(&buckets),
      shards_(std::move(shards)),
      placement_(placement) {
  for (Buffer& buffer : shared_) {
    buffer.memory = Tensor::empty(stream, shards_.dtype(), {largest});
  }
}

int GatheredBlocks::number_of(const Buckets& block) {
  const auto [found, is_new] = numbers_.emplace(block, static_cast<int>(blocks_.size()));
  if (is_new) {
    blocks_.push_back(block);
  }
  return found->second;
}

std::int64_t GatheredBlocks::size_of_block(int block) const {
  std::int64_t size = 0;
  for (const std::size_t i : blocks_[static_cast<std::size_t>(block)]) {
    size += (*buckets_)[i].size;
  }
  return size;
}

// A bucket's place in a buffer: behind those before it in the block.
Tensor GatheredBlocks::part(const Buffer& buffer, std::size_t place_in_block) const {
  const Buckets& block = blocks_[static_cast<std::size_t>(buffer.block)];
  std::int64_t first = 0;
  for (std::size_t i = 0; i < place_in_block; ++i) {
    first += (*buckets_)[block[i]].size;
  }
  return buffer.memory.range(first, {(*buckets_)[block[place_in_block]].size});
}

// Where the block is, or may be put.
GatheredBlocks::Buffer& GatheredBlocks::buffer_for(int block) {
  for (Buffer& buffer : shared_) {
    if (buffer.block == block && buffer.num_used == 0) {
      return buffer;
    }
  }
  const std::int64_t size = size_of_block(block);
  for (const std::size_t i : {1 - latest_, latest_}) {
    if (shared_[i].num_used == 0 && size <= shared_[i].memory.numel()) {
      return shared_[i];
    }
  }
  Buffer& buffer = further_.emplace_back();
  buffer.memory = Tensor::empty(*stream_, shards_.dtype(), {size});
  return buffer;
}

void GatheredBlocks::load(Buffer& buffer, int block) {
  buffer.block = block;
  std::vector<Gatherer::Gather> gathers;
  for (const std::size_t i : blocks_[static_cast<std::size_t>(block)]) {
    const Bucket& bucket = (*buckets_)[i];
    gathers.push_back({&bucket, shards_.range(bucket.shard_first, {bucket.shard_size()}),
                       part(buffer, gathers.size()), placement_});
  }
  buffer.arrived = gatherer_->start(gathers);
}

std::vector<Tensor> GatheredBlocks::take(const Buckets& buckets) {
  const int block = number_of(buckets);
  order_.note(block);
  Buffer& buffer = buffer_for(block);
  if (buffer.block != block) {
    load(buffer, block);
  }
  gatherer_->wait(std::exchange(buffer.arrived, {}));
  std::vector<Tensor> whole;
  for (const std::size_t bucket : buckets) {
    holders_[bucket] = &buffer;
    whole.push_back(part(buffer, whole.size()));
  }
  buffer.num_used = static_cast<int>(buckets.size());
  if (&buffer == &shared_[0] || &buffer == &shared_[1]) {
    latest_ = static_cast<std::size_t>(&buffer - shared_.data());
    look_ahead(&buffer);
  }
  return whole;
}

void GatheredBlocks::give_back(std::size_t bucket) {
  const auto holder = holders_.find(bucket);
  Buffer* const buffer = holder->second;
  holders_.erase(holder);
  if (--buffer->num_used == 0) {
    further_.remove_if([&](const Buffer& each) { return &each == buffer; });
  }
}

// Starts the gather of the first block to come that is not here, unless its place is wanted before.
void GatheredBlocks::look_ahead(const Buffer* current) {
  Buffer& other = shared_[&shared_[0] == current ? 1 : 0];
  if (!gatherer_->overlaps() || other.num_used > 0) {
    return;
  }
  for (const int block : order_.ahead()) {
    if (current != nullptr && current->block == block) {
      continue;
    }
    if (other.block != block && size_of_block(block) <= other.memory.numel()) {
      load(other, block);
    }
    return;
  }
}

void GatheredBlocks::renew() {
  for (Buffer& buffer : shared_) {
    check(buffer.num_used == 0, "values were written while a block used them");
    buffer.block = kNone;
    buffer.arrived.reset();
  }
  order_.begin(Pass::training);
  look_ahead(nullptr);
}

}  // namespace bloomery
