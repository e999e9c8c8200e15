#include "train/step/schedule_record.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace bloomery {
namespace {

ScheduleOptions unusual() {
  ScheduleOptions o;
  o.learning_rate = 0.1 + 0.2;
  o.min_learning_rate = 1e-5;
  o.decay_style = DecayStyle::cosine;
  o.train_length = 1000;
  o.decay_length = 800;
  o.warmup_fraction = 0.01;
  o.start_weight_decay = 0.01;
  o.end_weight_decay = 0.1;
  o.weight_decay_style = WeightDecayStyle::cosine;
  o.samples_per_unit = 3;
  return o;
}

TEST(ScheduleRecord, KeepsEveryFieldBitForBit) {
  const ScheduleOptions o = unusual();
  const ScheduleOptions back = schedule_from_json(to_json(o), "here");
  EXPECT_EQ(to_json(back), to_json(o));
  EXPECT_EQ(back.learning_rate, o.learning_rate);
  EXPECT_TRUE(schedule_differences(o, back).empty());
}

TEST(ScheduleRecord, NamesWhatDiffers) {
  ScheduleOptions other = unusual();
  other.learning_rate = 0.5;
  other.decay_length = 900;
  other.decay_style = DecayStyle::inverse_square_root;
  const std::vector<std::string> found = schedule_differences(unusual(), other);
  ASSERT_EQ(found.size(), 4u);  // the warm-up is a fraction of the decay
  EXPECT_EQ(found[0], "peak learning rate: 0.3 here, 0.5 in the checkpoint");
  EXPECT_EQ(found[3], "decay style: cosine here, inverse-square-root in the checkpoint");
}

TEST(ScheduleRecord, RefusesDamage) {
  for (const char* text : {"", "[]", "{}", R"({"learning_rate":"x"})"}) {
    EXPECT_THROW(schedule_from_json(text, "here"), Error) << text;
  }
  std::string text = to_json(unusual());
  text.replace(text.find("\"decay_style\":2"), 15, "\"decay_style\":9");
  EXPECT_THROW(schedule_from_json(text, "here"), Error);
}

}  // namespace
}  // namespace bloomery
