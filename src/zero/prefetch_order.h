// In which order a pass uses the blocks of a model, learned from the last pass of its kind: with
// pipelines, several micro-batches and recomputation it depends on much that the parameter store
// need not know.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace bloomery {

enum class Pass : std::uint8_t { training, evaluation };

class PrefetchOrder {
 public:
  // A pass begins, and the one in work is over.
  void begin(Pass pass);
  void note(int block);  // is used now
  // What is to come. Nothing while it is not known, or once the pass went another way.
  std::span<const int> ahead() const;

 private:
  const std::vector<int>& known() const { return known_[static_cast<std::size_t>(pass_)]; }

  std::array<std::vector<int>, 2> known_;  // by pass
  std::vector<int> now_;
  Pass pass_ = Pass::training;
  bool as_known_ = true;
};

}  // namespace bloomery
