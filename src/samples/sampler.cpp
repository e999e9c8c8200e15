#include "samples/sampler.h"

#include "base/error.h"
#include "base/generators/torch_random.h"

namespace bloomery {

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  check(options.micro_batch_size >= 1 && options.data_parallel_size >= 1 &&
            options.data_parallel_rank >= 0 &&
            options.data_parallel_rank < options.data_parallel_size,
        "no micro-batches of ", options.micro_batch_size, " for rank ", options.data_parallel_rank,
        " of ", options.data_parallel_size);
  check(options.total_samples >= options.block(), "the data have ", options.total_samples,
        " samples, fewer than one micro-batch of ", options.micro_batch_size, " for each of ",
        options.data_parallel_size, " data-parallel ranks");
}

bool Sampler::has(std::int64_t consumed) const {
  return options_.type == LoaderType::cyclic || options_.curriculum ||
         options_.total_samples - consumed >= options_.block();
}

std::vector<std::int64_t> Sampler::samples(std::int64_t consumed) const {
  const auto& [type, total, micro, rank, ranks, sharding, curriculum] = options_;
  const std::int64_t block = options_.block();
  check(consumed >= 0 && has(consumed), "no micro-batches are left after ", consumed, " of ", total,
        " samples");
  std::vector<std::int64_t> chosen(micro);
  if (curriculum) {
    const std::int64_t batch = curriculum->global_batch();
    const auto samples = curriculum->batch(consumed / batch);
    const auto first = samples->begin() + consumed % batch + rank * micro;
    return {first, first + micro};
  }
  if (type == LoaderType::single) {
    for (std::int64_t i = 0; i < micro; ++i) {
      chosen[i] = consumed + rank * micro + i;
    }
    return chosen;
  }
  const std::int64_t active = total - total % block;  // an incomplete last block is left out
  const std::int64_t in_epoch = consumed % active;
  check(in_epoch % block == 0, consumed, " consumed samples are not a multiple of ", block,
        " within the epoch: --dataloader-type cyclic cannot go on with another micro-batch size or "
        "number of data-parallel ranks in the middle of an epoch");
  const Order order = order_of_epoch(consumed / active);
  for (std::int64_t i = 0; i < micro; ++i) {
    chosen[i] = sharding ? rank * (active / ranks) + (*order)[in_epoch / ranks + i]
                         : (*order)[in_epoch + rank + i * ranks];
  }
  return chosen;
}

Sampler::Order Sampler::order_of_epoch(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, order] : orders_) {
    if (known == epoch) {
      return order;
    }
  }
  const std::int64_t micro = options_.micro_batch_size;
  const std::int64_t count = options_.data_sharding
                                 ? options_.total_samples / options_.block() * micro
                                 : options_.total_samples / micro * micro;
  orders_.emplace_back(epoch, std::make_shared<const std::vector<std::uint32_t>>(
                                  torch_randperm(count, static_cast<std::uint64_t>(epoch))));
  if (orders_.size() > 2) {
    orders_.pop_front();
  }
  return orders_.back().second;
}

}  // namespace bloomery
