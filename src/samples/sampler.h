// Which samples a data-parallel rank takes after so many were consumed: a pure function, so that
// resuming needs one number. Orders are those of Megatron's two samplers, and DeepSpeed's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "samples/curriculum/batches.h"
#include "samples/data_options.h"

namespace bloomery {

struct SamplerOptions {
  LoaderType type = LoaderType::single;
  std::int64_t total_samples = 0;
  std::int64_t micro_batch_size = 1;
  std::int64_t data_parallel_rank = 0, data_parallel_size = 1;
  bool data_sharding = true;  // of the cyclic order
  // Chooses the samples instead of `type`, which then does not count.
  std::shared_ptr<const CurriculumOrder> curriculum;

  std::int64_t block() const { return micro_batch_size * data_parallel_size; }
};

// Shared by threads.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }

  // Whether a whole micro-batch for every rank is left after `consumed` samples: always in the
  // cyclic order, and of a curriculum.
  bool has(std::int64_t consumed) const;
  // Samples of this rank's micro-batch when all ranks together have consumed so many. In the cyclic
  // order `consumed` must lie between two blocks of micro-batches, else it is an Error, as is
  // !has(consumed).
  std::vector<std::int64_t> samples(std::int64_t consumed) const;

 private:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

  Order order_of_epoch(std::int64_t epoch) const;

  SamplerOptions options_;
  mutable std::mutex mutex_;
  // Two epochs: workers on both sides of a border ask for either.
  mutable std::deque<std::pair<std::int64_t, Order>> orders_;
};

}  // namespace bloomery
