#include "optim/state_files.h"

#include <algorithm>
#include <cstring>

#include "base/round_up.h"
#include "device/recorded.h"

namespace bloomery {
namespace {

std::size_t address(const Tensor& tensor) { return reinterpret_cast<std::size_t>(tensor.data()); }

// Where a range of a file goes in a buffer: at the same place of a page.
Tensor window(const Tensor& buffer, const Tensor& mapped) {
  const std::size_t element = size_of(buffer.dtype());
  const std::size_t to_page = round_up(address(buffer), kDirectAlignment) - address(buffer);
  const std::size_t first = to_page + address(mapped) % kDirectAlignment;
  return buffer.range(static_cast<std::int64_t>(first / element), mapped.shape());
}

}  // namespace

StateFiles::StateFiles(Stream& host, const std::string& folder, const BlockIoOptions& options)
    : host_(&host), reading_(options), writing_(options) {
  if (host.abstract()) {
    memory_ = std::make_unique<Stream>(host.device(), host_memory(DeviceKind::abstract));
  } else {
    files_ = std::make_shared<FileMemory>(folder);
    memory_ = std::make_unique<Stream>(host.device(), files_);
  }
  reads_ = std::make_unique<Stream>(host.device(), StreamMode::queued);
  writes_ = std::make_unique<Stream>(host.device(), StreamMode::queued);
}

Tensor StateFiles::zeros(DType dtype, std::int64_t count) {
  const bool poisons = memory_->device().options().poison;
  return poisons ? Tensor::zeros(*memory_, dtype, {count})
                 : Tensor::empty(*memory_, dtype, {count});
}

void StateFiles::reserve(std::size_t tensors, std::int64_t most_elements, DType dtype) {
  const auto page = static_cast<std::int64_t>(kDirectAlignment / size_of(dtype));
  for (Set& set : sets_) {
    for (std::size_t i = 0; i < tensors; ++i) {
      set.memory.push_back(Tensor::empty(*host_, dtype, {most_elements + 3 * page}));
    }
  }
}

// What of a range fills no page is written by the mapping: another part has the rest of the page.
void StateFiles::transfer(BlockIo::Direction direction, const Tensor& mapped,
                          const Tensor& memory) {
  auto* const file_begin = static_cast<char*>(mapped.data());
  char* const begin = static_cast<char*>(memory.data());
  const std::size_t skipped = address(mapped) % kDirectAlignment, bytes = mapped.bytes();
  if (direction == BlockIo::Direction::read) {
    const auto [file, offset] = files_->place_of(file_begin - skipped);
    return reading_.transfer(*file, direction, offset, begin - skipped,
                             round_up(skipped + bytes, kDirectAlignment));
  }
  const std::size_t first =
      std::min(bytes, round_up(address(mapped), kDirectAlignment) - address(mapped));
  const std::size_t pages = (bytes - first) / kDirectAlignment * kDirectAlignment;
  if (pages > 0) {
    const auto [file, offset] = files_->place_of(file_begin + first);
    writing_.transfer(*file, direction, offset, begin + first, pages);
  }
  std::memcpy(file_begin, begin, first);
  std::memcpy(file_begin + first + pages, begin + first + pages, bytes - first - pages);
}

void StateFiles::read(std::size_t turn, const Part& mapped) {
  Set& set = sets_[turn % kSets];
  if (turn == 0 && last_written_) {
    reads_->wait(*last_written_);  // the update before
  }
  if (set.written) {
    reads_->wait(*set.written);
  }
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    reads_->submit([this, from = mapped[i], to = window(set.memory[i], mapped[i])] {
      transfer(BlockIo::Direction::read, from, to);
    });
  }
  set.read = recorded(*reads_);
}

StateFiles::Part StateFiles::take(std::size_t turn, const Part& mapped) {
  Set& set = sets_[turn % kSets];
  host_->wait(*set.read);
  Part part;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    part.push_back(window(set.memory[i], mapped[i]));
  }
  return part;
}

void StateFiles::write(std::size_t turn, const Part& mapped) {
  Set& set = sets_[turn % kSets];
  writes_->wait(*recorded(*host_));
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    writes_->submit([this, to = mapped[i], from = window(set.memory[i], mapped[i])] {
      transfer(BlockIo::Direction::write, to, from);
    });
  }
  last_written_ = set.written = recorded(*writes_);
}

void StateFiles::finish() {
  reads_->synchronize();
  writes_->synchronize();
}

}  // namespace bloomery
