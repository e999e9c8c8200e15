// Kernels of a step of generation that are launched as one with the kernel behind them: a product
// with the gate of its result, a rotary turn with the attention to what it turned.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "device/collector.h"
#include "ops/cache/cached_attention.h"
#include "ops/matmul/matmul.h"
#include "ops/rotary/rotary.h"

namespace bloomery {

class PairedKernels final : public Collector {
 public:
  // Of work on the stream, which must outlive this.
  explicit PairedKernels(Stream& stream) : stream_(stream) {}

  // Runs the work, a step that needs no gradients. Everything it computes is computed, but the
  // result of a product that only its gate needs, and that qkv may not be turned by positions.
  void run(const std::function<void()>& work);

  bool take(const std::type_info& type, const void* kernel) override;
  void flush() override;

  int num_pairs() const { return num_pairs_; }  // of the last run()

 private:
  template <class K>
  void wait_with(const K& kernel);
  template <class Launch>
  void pair(const Launch& launch);

  Stream& stream_;
  // What waits for the kernel behind it. Memory that is given back meanwhile is held.
  std::variant<std::monostate, Matmul, Rotary> waiting_;
  int num_pairs_ = 0;
};

}  // namespace bloomery
