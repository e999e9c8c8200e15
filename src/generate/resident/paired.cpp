#include "generate/resident/paired.h"

#include "ops/cache/group_attention.h"
#include "ops/matmul/some_rows.h"

namespace bloomery {

void PairedKernels::run(const std::function<void()>& work) {
  num_pairs_ = 0;
  const auto end = [&] {
    waiting_ = {};
    stream_.set_collector(nullptr);
    stream_.memory()->hold(false);
  };
  stream_.set_collector(this);
  try {
    work();
    flush();
  } catch (...) {
    end();
    throw;
  }
  end();
}

bool PairedKernels::take(const std::type_info& type, const void* kernel) {
  if (type == typeid(GatedForward)) {
    const auto& gate = *static_cast<const GatedForward*>(kernel);
    const auto* const product = std::get_if<Matmul>(&waiting_);
    if (product != nullptr && gate.x.data == product->d.data &&
        gate.x.numel() == product->d.numel() && gate.x.rows() == product->d.rows()) {
      pair([&, matmul = *product] { multiply_gated(stream_, matmul, gate); });
      return true;
    }
  } else if (type == typeid(CachedAttention)) {
    const auto& attention = *static_cast<const CachedAttention*>(kernel);
    const auto* const rotary = std::get_if<Rotary>(&waiting_);
    if (rotary != nullptr && may_attend_turned(stream_, attention, *rotary)) {
      pair([&, turn = *rotary] { attend_groups(stream_, attention, &turn); });
      return true;
    }
  }
  flush();
  if (type == typeid(Matmul)) {
    const auto& product = *static_cast<const Matmul*>(kernel);
    if (may_be_gated(stream_, product)) {
      wait_with(product);
      return true;
    }
  } else if (type == typeid(Rotary)) {
    wait_with(*static_cast<const Rotary*>(kernel));
    return true;
  }
  return false;
}

template <class K>
void PairedKernels::wait_with(const K& kernel) {
  waiting_ = kernel;
  stream_.memory()->hold(true);
}

// Launches what waits, with or without the kernel behind it.
template <class Launch>
void PairedKernels::pair(const Launch& launch) {
  waiting_ = {};
  stream_.set_collector(nullptr);
  timed_launch(stream_, launch);
  stream_.set_collector(this);
  stream_.memory()->hold(false);
  ++num_pairs_;
}

void PairedKernels::flush() {
  const auto waiting = std::exchange(waiting_, {});
  const auto launch = [&](const auto& kernel) {
    stream_.set_collector(nullptr);
    timed_launch(stream_, [&] { bloomery::run(OnCuda{}, stream_, kernel); });
    stream_.set_collector(this);
    stream_.memory()->hold(false);
  };
  if (const auto* const product = std::get_if<Matmul>(&waiting)) {
    launch(*product);
  } else if (const auto* const rotary = std::get_if<Rotary>(&waiting)) {
    launch(*rotary);
  }
}

}  // namespace bloomery
