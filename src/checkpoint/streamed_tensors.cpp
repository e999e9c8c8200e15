#include "checkpoint/streamed_tensors.h"

#include <cstring>

namespace bloomery {

void StreamedTensors::read(const std::string& name, std::uint64_t offset, std::span<std::byte> to) {
  Tensor tensor;
  {
    const std::scoped_lock lock(mutex_);
    Waiting& waiting = waiting_[name];
    if (!waiting.tensor) {
      waiting.tensor = source_.read(name);
      waiting.left = waiting.tensor.bytes();
    }
    check(to.size() <= waiting.left, name, ": more bytes were asked for than it has");
    tensor = waiting.tensor;
    waiting.left -= to.size();
    if (waiting.left == 0) {
      waiting_.erase(name);
    }
  }
  std::memcpy(to.data(), static_cast<const std::byte*>(tensor.data()) + offset, to.size());
}

}  // namespace bloomery
