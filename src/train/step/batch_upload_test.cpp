// Named arrays on the host and the tensors that they become.
#include "train/step/batch_upload.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "samples/language_model_dataset.h"

namespace bloomery {
namespace {

using Ints = std::vector<std::int32_t>;

class BatchUploadTest : public testing::Test {
 protected:
  Ints ints(const Tensor& tensor) { return tensor.to_host<std::int32_t>(stream_); }

  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_F(BatchUploadTest, ArraysGoToTheTensorsOfTheirNames) {
  const DocumentRules rules{
      .eod = 0, .reset_position_ids = true, .reset_attention_mask = true, .eod_mask_loss = true};
  HostBatch host(DeviceKind::cpu, language_model_fields(3, rules), 2);
  host.set("tokens", Ints{1, 2, 3, 4, 5, 6});
  host.set("labels", Ints{2, 3, 4, 5, 6, 7});
  host.set("positions", Ints{0, 1, 0, 0, 1, 2});
  host.set("key_begin", Ints{0, 0, 2, 0, 0, 0});
  host.set("loss_mask", std::vector<float>{1, 0, 1, 1, 1, 1});
  host.samples()[0] = 8;
  host.samples()[1] = 9;
  const Batch batch = upload(host, stream_);
  EXPECT_EQ(batch.num_sequences, 2);
  EXPECT_EQ(batch.length, 3);
  EXPECT_EQ(ints(batch.tokens), (Ints{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ints(batch.labels), (Ints{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ints(batch.positions), (Ints{0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(ints(batch.key_begin), (Ints{0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(ints(batch.key_end), Ints(6, 3));
  EXPECT_EQ(batch.loss_mask.to_host<float>(stream_), (std::vector<float>{1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(batch.samples.to_host<std::int64_t>(stream_), (std::vector<std::int64_t>{8, 9}));
}

TEST_F(BatchUploadTest, WhatIsLeftOutFollowsFromThePlace) {
  const Batch batch = upload(random_batch(2, 3, 10, 1, 0), stream_);
  EXPECT_EQ(ints(batch.positions), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(ints(batch.places), (Ints{0, 1, 2}));
  EXPECT_FALSE(batch.key_begin || batch.key_end || batch.loss_mask);
}

TEST_F(BatchUploadTest, TheEncodersArraysAreABatchOfTheirOwn) {
  const SampleFields fields{
      {"tokens", DType::int32, {2}},          {"token_types", DType::int32, {2}},
      {"is_random", DType::int32, {}},        {"encoder.tokens", DType::int32, {3}},
      {"encoder.key_end", DType::int32, {3}}, {"encoder_key_begin", DType::int32, {2}}};
  HostBatch host(DeviceKind::cpu, fields, 1);
  host.set("tokens", Ints{1, 2});
  host.set("token_types", Ints{0, 1});
  host.set("is_random", Ints{1});
  host.set("encoder.tokens", Ints{7, 8, 0});
  host.set("encoder.key_end", Ints{2, 2, 2});
  host.set("encoder_key_begin", Ints{1, 1});
  const Batch batch = upload(host, stream_);
  EXPECT_EQ(ints(batch.token_types), (Ints{0, 1}));
  EXPECT_EQ(ints(batch.is_random), Ints{1});
  EXPECT_FALSE(batch.key_begin || batch.key_end);
  EXPECT_EQ(ints(batch.encoder_key_begin), (Ints{1, 1}));
  EXPECT_EQ(ints(batch.encoder_key_end), (Ints{3, 3}));
  ASSERT_NE(batch.encoder, nullptr);
  EXPECT_EQ(batch.encoder->length, 3);
  EXPECT_EQ(ints(batch.encoder->tokens), (Ints{7, 8, 0}));
  EXPECT_EQ(ints(batch.encoder->key_begin), (Ints{0, 0, 0}));
  EXPECT_EQ(ints(batch.encoder->key_end), (Ints{2, 2, 2}));
  EXPECT_EQ(ints(batch.encoder->places), (Ints{0, 1, 2}));
  EXPECT_EQ(upload(random_batch(1, 2, 10, 1, 0), stream_).encoder, nullptr);
}

TEST_F(BatchUploadTest, AFieldThatNoModelReadsIsAnError) {
  const SampleFields fields{{"tokens", DType::int32, {3}}, {"colours", DType::int32, {3}}};
  EXPECT_THROW(BatchUpload(stream_, fields, 1), Error);
  EXPECT_THROW(BatchUpload(stream_, {{"labels", DType::int32, {3}}}, 1), Error);
  const SampleFields without{{"tokens", DType::int32, {3}}, {"encoder.labels", DType::int32, {3}}};
  EXPECT_THROW(BatchUpload(stream_, without, 1), Error);
}

}  // namespace
}  // namespace bloomery
