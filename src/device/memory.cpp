#include "device/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/round_up.h"
#include "build_config.h"
#include "device/cuda.h"
#include "device/memory_source.h"
#include "device/op_clock.h"
#include "device/out_of_memory.h"
#include "device/stream.h"

namespace bloomery {
namespace {

constexpr std::size_t kAlignment = 512;
constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kLargeStep = std::size_t{2} << 20;
constexpr unsigned char kPoison = 0xFF;  // a NaN in every floating-point type

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

MemoryPool::MemoryPool(DeviceKind kind, std::shared_ptr<MemorySource> source, Use use,
                       Stream* poison_on)
    : source_(std::move(source)),
      guarded_(kind == DeviceKind::cpu && use == Use::at_once),
      poison_on_(poison_on) {}

MemoryPool::~MemoryPool() {
  for (const auto& [segment, bytes] : segments_) {
    set_bounds(segment, bytes, bytes);
    source_->release(segment, bytes);
  }
}

void* MemoryPool::allocate(std::size_t bytes) {
  const std::size_t wanted = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  if (poison_on_ != nullptr) {
    // Poisoning is work on the stream, in front of which a collector launches what it keeps back;
    // then it releases memory, which takes the lock.
    flush_collected(*poison_on_);
  }
  const std::lock_guard lock(mutex_);
  auto found = find_fit(wanted);
  if (found == blocks_.end()) {
    found = add_segment(wanted);
  }
  char* const start = found->first;
  Block& block = found->second;
  free_.erase({block.bytes, start});
  block.free = false;
  if (block.bytes - wanted >= kAlignment) {
    char* const rest = start + wanted;
    blocks_[rest] = {block.bytes - wanted, block.segment, true};
    free_.insert({block.bytes - wanted, rest});
    block.bytes = wanted;
  }
  source_->note_block(start, block.bytes);
  statistics_.used_bytes += block.bytes;
  statistics_.peak_used_bytes = std::max(statistics_.peak_used_bytes, statistics_.used_bytes);
  set_bounds(start, block.bytes, block.bytes);
  poison_block(start, block.bytes);
  set_bounds(start, bytes, block.bytes);
  return start;
}

MemoryPool::Blocks::iterator MemoryPool::find_fit(std::size_t bytes) {
  const auto candidate = free_.lower_bound({bytes, nullptr});
  return candidate == free_.end() ? blocks_.end() : blocks_.find(candidate->second);
}

MemoryPool::Blocks::iterator MemoryPool::add_segment(std::size_t bytes) {
  const std::size_t size = std::max(kSmallSegment, round_up(bytes, kLargeStep));
  ++statistics_.num_device_calls;
  void* segment = source_->allocate(size);
  if (segment == nullptr) {
    trim_locked();
    segment = source_->allocate(size);
  }
  if (segment == nullptr) {
    throw OutOfMemory(
        concat("out of memory: asked for ", mebibytes(bytes), " MiB ", source_->where(), ", where ",
               mebibytes(source_->free_bytes()), " MiB are free and this rank holds ",
               mebibytes(statistics_.used_bytes), " MiB (", mebibytes(statistics_.reserved_bytes),
               " reserved). Use a smaller micro-batch, recomputation, or more ranks"));
  }
  set_bounds(segment, 0, size);
  segments_[segment] = size;
  statistics_.reserved_bytes += size;
  statistics_.peak_reserved_bytes =
      std::max(statistics_.peak_reserved_bytes, statistics_.reserved_bytes);
  auto* const start = static_cast<char*>(segment);
  free_.insert({size, start});
  return blocks_.insert_or_assign(start, Block{size, segment, true}).first;
}

void MemoryPool::release(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  if (holding_) {
    held_.push_back(memory);
  } else {
    release_locked(memory);
  }
}

void MemoryPool::hold(bool on) noexcept {
  const std::lock_guard lock(mutex_);
  holding_ = on;
  if (!on) {
    for (void* const memory : held_) {
      release_locked(memory);
    }
    held_.clear();
  }
}

void MemoryPool::release_locked(void* memory) noexcept {
  auto block = blocks_.find(static_cast<char*>(memory));
  if (block == blocks_.end()) {
    return;
  }
  source_->note_block(memory, block->second.bytes);
  statistics_.used_bytes -= block->second.bytes;
  set_bounds(memory, block->second.bytes, block->second.bytes);
  poison_block(memory, block->second.bytes);
  set_bounds(memory, 0, block->second.bytes);
  block->second.free = true;
  const auto merge_with_next = [&](Blocks::iterator left) {
    const auto right = std::next(left);
    if (right != blocks_.end() && right->second.free &&
        right->second.segment == left->second.segment) {
      free_.erase({right->second.bytes, right->first});
      left->second.bytes += right->second.bytes;
      blocks_.erase(right);
    }
  };
  merge_with_next(block);
  if (block != blocks_.begin()) {
    const auto left = std::prev(block);
    if (left->second.free && left->second.segment == block->second.segment) {
      free_.erase({left->second.bytes, left->first});
      merge_with_next(left);
      block = left;
    }
  }
  free_.insert({block->second.bytes, block->first});
}

MemoryStatistics MemoryPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_used_bytes = statistics_.used_bytes;
  statistics_.peak_reserved_bytes = statistics_.reserved_bytes;
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void MemoryPool::trim_locked() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const auto segment = segments_.find(it->second.segment);
    if (it->second.free && it->second.bytes == segment->second) {
      free_.erase({it->second.bytes, it->first});
      set_bounds(segment->first, segment->second, segment->second);
      source_->release(segment->first, segment->second);
      source_->note_segment_given_back();
      statistics_.reserved_bytes -= segment->second;
      segments_.erase(segment);
      it = blocks_.erase(it);
    } else {
      ++it;
    }
  }
}

void MemoryPool::stop_poisoning() {
  const std::lock_guard lock(mutex_);
  poison_on_ = nullptr;
}

void MemoryPool::poison_block(void* memory, std::size_t bytes) {
  if (poison_on_ != nullptr) {
    poison_on_->fill(memory, kPoison, bytes);
  }
}

void MemoryPool::set_bounds([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t valid,
                            [[maybe_unused]] std::size_t bytes) const {
#if defined(__SANITIZE_ADDRESS__)
  if (guarded_) {
    __asan_unpoison_memory_region(memory, valid);
    __asan_poison_memory_region(static_cast<char*>(memory) + valid, bytes - valid);
  }
#endif
}

PinnedMemory::PinnedMemory(DeviceKind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      data_ = cuda::allocate_pinned(bytes);
      return;
    }
  }
  data_ = std::aligned_alloc(4096, round_up(std::max<std::size_t>(bytes, 1), 4096));
  check(data_ != nullptr, "out of host memory: asked for ", mebibytes(bytes), " MiB");
}

PinnedMemory::~PinnedMemory() {
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      cuda::release_pinned(data_);
      return;
    }
  }
  std::free(data_);
}

}  // namespace bloomery
