#include "comm/mesh.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace bloomery {
namespace {

TEST(Mesh, SingleIsOneRankOnEveryAxis) {
  Mesh mesh = Mesh::single();
  for (const Axis axis : {Axis::tensor, Axis::context, Axis::data, Axis::pipeline}) {
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

    Communicator& stage = mesh.axes(axis_bit(Axis::tensor) | axis_bit(Axis::data));
    Ranks expected;
    for (int i = 0; i < 6; ++i) {
      expected.push_back(6 * pipeline + i);
    }
    EXPECT_EQ(gathered(stage, rank, stream), expected);
    EXPECT_EQ(&stage, &mesh.axes(axis_bit(Axis::tensor) | axis_bit(Axis::data)));
    if (rank == 7) {
      EXPECT_EQ(mesh.place(), "tensor 1/2, data 0/3, pipeline 1/2");
    }
  });
}

}  // namespace
}  // namespace bloomery
