// What a rank gets of samples, against what the coordinates of its tokens say.
#include "train/step/batch_cut.h"

#include <gtest/gtest.h>

#include <numeric>

#include "autograd/batch_fields.h"
#include "base/error.h"
#include "train/step/batch_upload.h"

namespace bloomery {
namespace {

using Numbers = std::vector<double>;
using Places = std::vector<std::int64_t>;
using Per = BatchField::Per;

constexpr std::int64_t kSamples = 3, kLength = 48;

// Every array that samples may have, each number once.
HostBatch numbered(std::int64_t length, std::int64_t sequences_of_sample = 1) {
  SampleFields fields;
  for (const BatchField& field : kBatchFields) {
    if (field.of_samples && !field.name.starts_with("encoder")) {
      Shape shape = field.is_per_token() ? Shape{length} : Shape{};
      if (sequences_of_sample > 1 && field.per != Per::sample) {
        shape =
            field.is_per_token() ? Shape{sequences_of_sample, length} : Shape{sequences_of_sample};
      }
      fields.push_back({field.name, field.dtype, shape});
    }
  }
  HostBatch host(DeviceKind::cpu, fields, kSamples);
  std::int32_t number = 0;
  for (const SampleField& field : fields) {
    if (field.dtype == DType::fp32) {
      for (float& x : host.array<float>(field.name)) x = static_cast<float>(++number);
    } else {
      for (std::int32_t& x : host.array<std::int32_t>(field.name)) x = ++number;
    }
  }
  for (std::int32_t& end : host.array<std::int32_t>("key_end")) {
    end = 1 + end % static_cast<std::int32_t>(length);
  }
  std::iota(host.samples().begin(), host.samples().end(), 70);
  return host;
}

Numbers on_host(const Tensor& tensor, Stream& stream) {
  Numbers all;
  const auto append = [&]<class T>(T) {
    for (const T x : tensor.to_host<T>(stream)) all.push_back(static_cast<double>(x));
  };
  if (!tensor) return all;
  if (tensor.dtype() == DType::fp32) append(float{});
  if (tensor.dtype() == DType::int32) append(std::int32_t{});
  if (tensor.dtype() == DType::int64) append(std::int64_t{});
  return all;
}

// Of an array of samples, the numbers at these places of each sequence; all where there are none.
Numbers wanted(const HostBatch& host, const BatchField& field, const Places& places,
               std::int64_t length) {
  Numbers all, left;
  if (field.dtype == DType::fp32) {
    for (const float x : host.array<float>(field.name)) all.push_back(x);
  } else {
    for (const std::int32_t x : host.array<std::int32_t>(field.name)) all.push_back(x);
  }
  if (places.empty()) return all;
  for (std::int64_t sequence = 0; sequence < std::ssize(all) / length; ++sequence) {
    for (const std::int64_t place : places) {
      left.push_back(all[static_cast<std::size_t>(sequence * length + place)]);
    }
  }
  return left;
}

// What of each sequence a rank of a ring holds: two of 2 x ranks equal parts.
Places of_ring(const SequenceShare& share) {
  Places places;
  for (std::int64_t place = 0; place < kLength; ++place) {
    const std::int64_t part = place * 2 * share.ring / kLength;
    if (share.ring == 1 || part == share.ring_rank || part == 2 * share.ring - 1 - share.ring_rank)
      places.push_back(place);
  }
  return places;
}

Places of_ulysses(const SequenceShare& share, const Places& all) {
  const auto count = std::ssize(all), chunk = share.chunk > 0 ? share.chunk : count;
  Places places;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t in_chunk = std::min(chunk, count - i / chunk * chunk) / share.ulysses;
    if (i % chunk / in_chunk == share.ulysses_rank) {
      places.push_back(all[static_cast<std::size_t>(i)]);
    }
  }
  return places;
}

Numbers as_numbers(const Places& places) { return {places.begin(), places.end()}; }

class BatchCutTest : public ::testing::Test {
 protected:
  void check_share(const HostBatch& host, const SequenceShare& share) {
    const Batch batch = upload(host, stream_, share);
    const Places group = of_ring(share), held = of_ulysses(share, group);
    ASSERT_TRUE(batch.whole);
    const bool exchanges = share.ulysses > 1;
    EXPECT_EQ(batch.length, std::ssize(held));
    EXPECT_EQ(batch.whole_length(), kLength);
    EXPECT_EQ(on_host(batch.places, stream_), as_numbers(held));
    EXPECT_EQ(on_host(batch.samples, stream_).size(),
              static_cast<std::size_t>(batch.num_sequences));
    for (const BatchField& field : kBatchFields) {
      if (host.find(field.name) == nullptr) continue;
      const bool of_whole = exchanges && field.per == Per::query;
      const Tensor& tensor = (of_whole ? *batch.whole : batch).*field.tensor;
      const Places& places = of_whole ? group : held;
      EXPECT_EQ(on_host(tensor, stream_),
                wanted(host, field, field.is_per_token() ? places : Places(), kLength))
          << field.name;
      if (of_whole) {
        EXPECT_FALSE(batch.*field.tensor) << field.name;
      }
    }
    if (exchanges) {
      EXPECT_EQ(on_host(batch.whole->places, stream_), as_numbers(group));
      EXPECT_EQ(batch.whole->samples.data(), batch.samples.data());
      EXPECT_FALSE(batch.whole->tokens);
    }
    if (share.ring > 1) check_ring(exchanges ? *batch.whole->whole : *batch.whole, share);
  }

  // The places of a ring, rank after rank.
  void check_ring(const Batch& whole, SequenceShare share) {
    Places all;
    for (share.ring_rank = 0; share.ring_rank < share.ring; ++share.ring_rank) {
      const Places each = of_ring(share);
      all.insert(all.end(), each.begin(), each.end());
    }
    EXPECT_EQ(on_host(whole.places, stream_), as_numbers(all));
    EXPECT_FALSE(whole.tokens || whole.key_begin || whole.whole);
  }

  Device device_{{.num_threads = 1, .poison = true}};
  Stream stream_{device_};
};

TEST_F(BatchCutTest, EachRankHasTheNumbersOfItsPlaces) {
  for (const std::int64_t sequences : {1, 2}) {
    const HostBatch host = numbered(kLength, sequences);
    for (const auto& [ring, ulysses, chunk] :
         {std::array{2, 1, 0}, {4, 1, 0}, {1, 2, 0}, {1, 3, 0}, {2, 2, 0}, {2, 3, 0}, {1, 2, 20}}) {
      for (int rank = 0; rank < ring * ulysses; ++rank) {
        SCOPED_TRACE(concat("rank ", rank, " of ", ring, " x ", ulysses, ", chunks of ", chunk));
        check_share(host, {.ring_rank = rank / ulysses,
                           .ring = ring,
                           .ulysses_rank = rank % ulysses,
                           .ulysses = ulysses,
                           .chunk = chunk});
      }
    }
  }
}

TEST_F(BatchCutTest, PositionsThatSamplesLackAreThoseOfTheWholeSequence) {
  const HostBatch host = random_batch(2, kLength, 50, 7, 0);
  const SequenceShare share{.ring_rank = 1, .ring = 2, .ulysses_rank = 1, .ulysses = 2};
  const Batch batch = upload(host, stream_, share);
  Numbers twice = on_host(batch.places, stream_);
  EXPECT_EQ(twice.front(), 24);  // 12 to 35 of 48 is the ring's second rank's
  twice.insert(twice.end(), twice.begin(), twice.begin() + batch.length);
  EXPECT_EQ(on_host(batch.positions, stream_), twice);
}

// A curriculum cuts samples, and ranks divide what is left.
TEST_F(BatchCutTest, APartOfTheFirstTokensIsThatOfShorterSamples) {
  const HostBatch host = numbered(kLength);
  constexpr std::int64_t kShort = 24;
  for (const SequenceShare& share :
       {SequenceShare{}, SequenceShare{.ulysses_rank = 1, .ulysses = 2},
        SequenceShare{.ring_rank = 1, .ring = 3}}) {
    const BatchUpload cut(stream_, host.fields(), kSamples, share, kShort);
    ASSERT_TRUE(cut.cuts());
    const HostBatch part(DeviceKind::cpu, cut.fields(), kSamples);
    cut.cut(host, part);
    const Batch batch = cut.enqueue(part);
    EXPECT_EQ(batch.length, kShort / share.ring / share.ulysses);
    EXPECT_EQ(batch.whole_length(), kShort);
    Places places;
    for (const double place : on_host(batch.places, stream_)) {
      places.push_back(static_cast<std::int64_t>(place));
    }
    EXPECT_LT(std::ranges::max(places), kShort);
    const BatchField& tokens = *find_batch_field("tokens");
    EXPECT_EQ(on_host(batch.tokens, stream_), wanted(host, tokens, places, kLength));
    const Tensor& ends = (share.ulysses > 1 ? *batch.whole : batch).key_end;
    EXPECT_EQ(std::ranges::max(on_host(ends, stream_)), kShort);
  }
}

TEST_F(BatchCutTest, WhatCannotBeDividedIsAnError) {
  const HostBatch host = random_batch(1, 30, 50, 7, 0);
  EXPECT_THROW(upload(host, stream_, {.ring = 4}), Error);
  EXPECT_THROW(upload(host, stream_, {.ulysses = 4}), Error);
  const SampleFields two = {{"tokens", DType::int32, {6}}, {"encoder.tokens", DType::int32, {12}}};
  EXPECT_THROW(upload(random_batch(two, 1, 50, 7, 0), stream_, {.ulysses = 2}), Error);
}

}  // namespace
}  // namespace bloomery
