#include "zero/prefetch_order.h"

#include <utility>

namespace bloomery {

void PrefetchOrder::begin(Pass pass) {
  if (!now_.empty()) {
    known_[static_cast<std::size_t>(pass_)] = std::exchange(now_, {});
  }
  pass_ = pass;
  as_known_ = true;
}

void PrefetchOrder::note(int block) {
  const std::size_t place = now_.size();
  as_known_ = as_known_ && place < known().size() && known()[place] == block;
  now_.push_back(block);
}

std::span<const int> PrefetchOrder::ahead() const {
  return as_known_ ? std::span(known()).subspan(now_.size()) : std::span<const int>();
}

}  // namespace bloomery
