#include "train/step/batch_slots.h"

#include <gtest/gtest.h>

#include "autograd/batch_fields.h"
#include "train/step/batch_upload.h"

namespace bloomery {
namespace {

TEST(BatchSlots, TakeBatchesAtTheSamePlaces) {
  Device device({.num_threads = 1});
  Stream stream(device);
  BatchSlots slots(stream);
  const auto batch = [&](std::int64_t length, std::int64_t first) {
    return upload(random_batch(2, length, 50, 7, first), stream);
  };
  EXPECT_FALSE(slots.fill(batch(8, 0)));
  const void* const place = slots.batch().tokens.data();
  const Batch other = batch(8, 4);
  EXPECT_TRUE(slots.fill(other));
  EXPECT_EQ(slots.batch().tokens.data(), place);
  EXPECT_NE(other.tokens.data(), place);
  for (Tensor Batch::*const field : {&Batch::tokens, &Batch::labels, &Batch::positions}) {
    EXPECT_EQ((slots.batch().*field).to_host<std::int32_t>(stream),
              (other.*field).to_host<std::int32_t>(stream));
  }
  EXPECT_EQ(slots.batch().samples.to_host<std::int64_t>(stream), (std::vector<std::int64_t>{4, 5}));
  EXPECT_FALSE(slots.batch().loss_mask);
}

TEST(BatchSlots, HaveEveryTensorOfAMicroBatch) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  BatchSlots slots(stream);
  const auto batch = [&](std::int64_t first) {
    Batch all{.num_sequences = 2, .length = 2};
    for (const BatchField& field : kBatchFields) {
      Tensor& tensor = all.*field.tensor = Tensor::empty(stream, field.dtype, {4});
      std::vector<std::uint8_t> bytes(tensor.bytes());
      std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(first++); });
      stream.copy(tensor.data(), bytes.data(), bytes.size());
    }
    return all;
  };
  const auto bytes = [&](const Tensor& tensor) {
    std::vector<std::uint8_t> all(tensor.bytes());
    stream.copy(all.data(), tensor.data(), all.size());
    return all;
  };
  EXPECT_FALSE(slots.fill(batch(0)));
  const Batch second = batch(100);
  EXPECT_TRUE(slots.fill(second));
  for (const BatchField& field : kBatchFields) {
    const Tensor& slot = slots.batch().*field.tensor;
    if (field.per == BatchField::Per::step) {
      EXPECT_FALSE(slot) << field.name;
    } else {
      ASSERT_TRUE(slot) << field.name;
      EXPECT_EQ(bytes(slot), bytes(second.*field.tensor)) << field.name;
    }
  }
}

TEST(BatchSlots, CopyPositionsOnce) {
  Device device({.num_threads = 1});
  Stream stream(device);
  BatchSlots slots(stream);
  const HostBatch first = random_batch(2, 8, 50, 7, 0);
  const BatchUpload all(stream, first.fields(), 2);
  slots.fill(all.enqueue(first));
  const Batch second = all.enqueue(random_batch(2, 8, 50, 7, 2));
  stream.fill(slots.batch().positions.data(), 0, slots.batch().positions.bytes());
  slots.fill(second);  // with the same positions: nobody writes them anew
  EXPECT_EQ(slots.batch().positions.to_host<std::int32_t>(stream), std::vector<std::int32_t>(16));
  EXPECT_EQ(slots.batch().tokens.to_host<std::int32_t>(stream),
            second.tokens.to_host<std::int32_t>(stream));
  const Batch third = upload(random_batch(2, 8, 50, 7, 4), stream);
  slots.fill(third);
  EXPECT_EQ(slots.batch().positions.to_host<std::int32_t>(stream),
            third.positions.to_host<std::int32_t>(stream));
}

TEST(BatchSlots, MoveWhereShapesChange) {
  Device device({.num_threads = 1});
  Stream stream(device);
  BatchSlots slots(stream);
  slots.fill(upload(random_batch(2, 8, 50, 7, 0), stream));
  EXPECT_FALSE(slots.fill(upload(random_batch(2, 16, 50, 7, 0), stream)));
  EXPECT_EQ(slots.batch().length, 16);
  const SampleFields t5 = {{"tokens", DType::int32, {6}}, {"encoder.tokens", DType::int32, {12}}};
  EXPECT_FALSE(slots.fill(upload(random_batch(t5, 2, 50, 7, 0), stream)));
  const Batch next = upload(random_batch(t5, 2, 50, 7, 2), stream);
  EXPECT_TRUE(slots.fill(next));
  ASSERT_TRUE(slots.batch().encoder);
  EXPECT_EQ(slots.batch().encoder->tokens.to_host<std::int32_t>(stream),
            next.encoder->tokens.to_host<std::int32_t>(stream));
  EXPECT_NE(slots.batch().encoder->tokens.data(), next.encoder->tokens.data());
}

}  // namespace
}  // namespace bloomery
