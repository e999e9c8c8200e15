#include "train/plan/state_memory.h"

#include <set>

namespace bloomery {

StateMemory expected_state(Rank& rank) {
  const DType dtype = rank.options().dtype;
  const auto exact = static_cast<std::int64_t>(size_of(accumulation_dtype(dtype)));
  const auto value = static_cast<std::int64_t>(size_of(dtype));
  const auto grad = rank.options().replicas.grad_dtype == DType::bf16 ? value : exact;
  const std::int64_t state = exact * std::ssize(rank.optimizer().state_tensors());
  // Beside the value: what its rounding left, or the whole weight.
  const std::int64_t master = dtype == DType::bf16 ? kLowHalfBytes : value < exact ? exact : 0;
  const Sharding& sharded = rank.store().sharded();
  StateMemory bytes;
  std::set<const Parameter*> counted;  // a tied weight is listed by two chunks
  for (const Parameter* parameter : rank.parameters()) {
    if (!counted.insert(parameter).second) {
      continue;
    }
    const std::int64_t count = parameter->local_shape.numel();
    if (rank.stage().quantized() != nullptr &&
        rank.stage().quantized()->find(*parameter) != nullptr) {
      const std::int64_t rows = parameter->local_shape.rows(),
                         columns = parameter->local_shape.back();
      const QuantizedFormat format = rank.stage().quantized()->format();
      bytes.parameters +=
          rows * (code_bytes(format, columns) + value * scales_per_row(format, columns));
      continue;
    }
    const int holders = rank.mesh().size(parameter->grad_axes);
    const auto held = [&](bool is_sharded) { return count / (is_sharded ? holders : 1); };
    bytes.parameters += value * held(sharded.values);
    if (!parameter->frozen) {
      bytes.gradients += grad * held(sharded.gradients);
      bytes.optimizer += (state + master) * held(sharded.optimizer);
    }
  }
  const OffloadOptions& offload = rank.options().offload;  // what the device is rid of
  bytes.parameters = offload.values ? 0 : bytes.parameters;
  bytes.optimizer = static_cast<std::int64_t>(static_cast<double>(bytes.optimizer) *
                                              (1 - offload.optimizer_share));
  return bytes;
}

StateMemory allocated_state(Rank& rank) {
  const StoreBytes store = rank.store().bytes();
  const std::size_t codes =
      rank.stage().quantized() != nullptr ? rank.stage().quantized()->bytes() : 0;
  return {.parameters = static_cast<std::int64_t>(store.values + codes),
          .gradients = static_cast<std::int64_t>(store.gradients),
          .optimizer = static_cast<std::int64_t>(store.master + rank.optimizer().state_bytes())};
}

}  // namespace bloomery
