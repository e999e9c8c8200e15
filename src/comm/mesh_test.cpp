#include "comm/mesh.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace bloomery {
namespace {

TEST(Mesh, SingleIsOneRankOnEveryAxis) {
  Mesh mesh = Mesh::single();
  for (const Axis axis :
       {Axis::tensor, Axis::context, Axis::expert, Axis::expert_data, Axis::pipeline, Axis::data}) {
    EXPECT_EQ(mesh.degree(axis), 1);
    EXPECT_EQ(mesh.coordinate(axis), 0);
    EXPECT_EQ(mesh.axis(axis).size(), 1);
  }
  EXPECT_EQ(mesh.place(), "one rank");
}

TEST(Mesh, RefusesAWrongNumberOfRanks) {
  try {
    Mesh mesh({.tensor = 2, .data = 3}, make_self_communicator());
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "tensor 2 x context 1 x data 3 x pipeline 1 = 6 ranks, but 1 were started");
  }
  EXPECT_THROW(Mesh({.tensor = 0}, make_self_communicator()), Error);
  EXPECT_THROW(Mesh({.expert = 2}, make_self_communicator()), Error);
}

TEST(Mesh, OfOneRankWhoseOthersDoNotExist) {
  Mesh mesh({.tensor = 2, .data = 3, .pipeline = 4}, make_abstract_communicator(13, 24));
  EXPECT_EQ(mesh.place(), "tensor 1/2, data 0/3, pipeline 2/4");
  EXPECT_EQ(mesh.axis(Axis::data).size(), 3);
  EXPECT_EQ(mesh.axis(Axis::pipeline).rank(), 2);
  EXPECT_EQ(mesh.gathers(kReplicaAxes).size(), 3);
  EXPECT_EQ(mesh.host().gather("names", "mine"), std::vector<std::string>(24, "mine"));
  Device abstract({.kind = DeviceKind::abstract}), real({.num_threads = 1});
  Stream nowhere(abstract), here(real);
  const Tensor huge = Tensor::empty(nowhere, DType::fp32, {std::int64_t{1} << 36});
  mesh.axis(Axis::data).all_reduce(huge, Reduce::sum, nowhere);
  EXPECT_THROW(
      mesh.axis(Axis::data).all_reduce(Tensor::zeros(here, DType::fp32, {1}), Reduce::sum, here),
      Error);
  EXPECT_THROW(mesh.world().split(0, 0), Error);
}

std::vector<std::int32_t> gathered(Communicator& group, int world_rank, Stream& stream) {
  const Tensor mine = Tensor::from_host<std::int32_t>(stream, {world_rank}, {1});
  const Tensor all = Tensor::empty(stream, DType::int32, {group.size()});
  group.all_gather(mine, all, stream);
  return all.to_host<std::int32_t>(stream);
}

// Rank = tensor + 2 (context + 1 (data + 3 pipeline)).
TEST(Mesh, TensorIsFastestThenContextDataPipeline) {
  run_ranks(12, [](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device);
    Mesh mesh({.tensor = 2, .data = 3, .pipeline = 2}, std::move(world));
    const int tensor = rank % 2, data = rank / 2 % 3, pipeline = rank / 6;
    EXPECT_EQ(mesh.coordinate(Axis::tensor), tensor);
    EXPECT_EQ(mesh.coordinate(Axis::context), 0);
    EXPECT_EQ(mesh.coordinate(Axis::data), data);
    EXPECT_EQ(mesh.coordinate(Axis::pipeline), pipeline);

    using Ranks = std::vector<std::int32_t>;
    const int data_first = tensor + 6 * pipeline, pipeline_first = tensor + 2 * data;
    EXPECT_EQ(gathered(mesh.axis(Axis::tensor), rank, stream),
              (Ranks{rank - tensor, rank - tensor + 1}));
    EXPECT_EQ(gathered(mesh.axis(Axis::data), rank, stream),
              (Ranks{data_first, data_first + 2, data_first + 4}));
    EXPECT_EQ(gathered(mesh.axis(Axis::pipeline), rank, stream),
              (Ranks{pipeline_first, pipeline_first + 6}));
    EXPECT_EQ(mesh.axis(Axis::context).size(), 1);
    EXPECT_EQ(mesh.axis(Axis::data).rank(), data);

    EXPECT_EQ(gathered(mesh.axes(axis_set(Axis::tensor, Axis::pipeline)), rank, stream),
              (Ranks{2 * data, 2 * data + 1, 2 * data + 6, 2 * data + 7}));
    EXPECT_EQ(&mesh.axes(kAllAxes), &mesh.world());
    EXPECT_EQ(&mesh.axes(kReplicaAxes), &mesh.axis(Axis::data)) << "the context axis is trivial";
    EXPECT_THROW(mesh.axes(axis_set(Axis::tensor, Axis::data)), Error) << "made at start-up or not";
    const Ranks replicas = {data_first, data_first + 2, data_first + 4};
    EXPECT_EQ(gathered(mesh.reductions(kReplicaAxes), rank, stream), replicas);
    EXPECT_EQ(gathered(mesh.gathers(kReplicaAxes), rank, stream), replicas);
    EXPECT_NE(&mesh.gathers(kReplicaAxes), &mesh.reductions(kReplicaAxes));
    if (rank == 7) {
      EXPECT_EQ(mesh.place(), "tensor 1/2, data 0/3, pipeline 1/2");
    }
  });
}

// Rank = tensor + 2 (expert + 2 (expert data)); data = expert + 2 (expert data).
TEST(Mesh, ExpertsDivideTheDataAxis) {
  run_ranks(8, [](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1});
    Stream stream(device);
    Mesh mesh({.tensor = 2, .data = 4, .expert = 2}, std::move(world));
    const int tensor = rank % 2, expert = rank / 2 % 2, expert_data = rank / 4;
    EXPECT_EQ(mesh.coordinate(Axis::data), rank / 2);
    EXPECT_EQ(mesh.coordinate(Axis::expert), expert);
    EXPECT_EQ(mesh.coordinate(Axis::expert_data), expert_data);
    EXPECT_EQ(mesh.size(kReplicaAxes), 4);
    EXPECT_EQ(mesh.size(kExpertReplicaAxes), 2);

    using Ranks = std::vector<std::int32_t>;
    const int first = tensor + 4 * expert_data;
    EXPECT_EQ(gathered(mesh.axis(Axis::expert), rank, stream), (Ranks{first, first + 2}));
    const Ranks copies = {tensor + 2 * expert, tensor + 2 * expert + 4};
    EXPECT_EQ(gathered(mesh.axes(kExpertReplicaAxes), rank, stream), copies);
    EXPECT_EQ(gathered(mesh.reductions(kExpertReplicaAxes), rank, stream), copies);
    EXPECT_EQ(gathered(mesh.axis(Axis::data), rank, stream),
              (Ranks{tensor, tensor + 2, tensor + 4, tensor + 6}));
  });
}

}  // namespace
}  // namespace bloomery
