// Updates on the host whose values do not reach the device.
#include "optim/host_update.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(HostUpdate, WhoAwaitsValuesHearsWhyTheyDoNotCome) {
  constexpr std::int64_t kCount = 2 * kUnitSize;
  Device device({.num_threads = 1});
  Stream compute(device), copies(device, StreamMode::queued), host(device, StreamMode::queued);
  std::vector<FlatShard> shards(1);
  FlatShard& shard = shards.front();
  shard.form = WeightForm::master;
  shard.value = Tensor::zeros(compute, DType::bf16, {kUnitSize});  // half of what is sent there
  shard.grad = Tensor::zeros(compute, DType::bf16, {kCount});
  shard.master = Tensor::zeros(host, DType::fp32, {kCount});
  shard.state = {Tensor::zeros(host, DType::fp32, {kCount})};
  shard.host_flags = Tensor::zeros(host, DType::uint8, {num_units(kCount)});
  shard.placement = Placement::host;
  shard.host = &host;
  shard.host_parts = {{.bucket = 0, .first = 0, .count = kCount}};
  const UpdateScalars scalars;
  HostUpdate update(compute, copies, shards,
                    [](Stream&, const UpdateBuffers&, const UpdateScalars*) {});
  update.start(&scalars);
  EXPECT_THROW(update.await(0), Error);
  EXPECT_THROW(host.synchronize(), Error);
}

}  // namespace
}  // namespace bloomery
