// Fused queries, keys and values of Megatron-DeepSpeed before and since FPDT, which cuts them into
// thirds under the same checkpoint_version.
#include <gtest/gtest.h>

#include <numeric>

#include "base/temporary_folder.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/pickle/torch_writer.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHeads = 4, kWidth = 2, kHidden = kHeads * kWidth, kVocabulary = 8;
constexpr const char* kQkv = "blocks.0.attention.qkv.weight";

ModelOptions model(std::int64_t groups) {
  ModelOptions o{.num_layers = 1, .hidden_size = kHidden};
  o.attention.num_heads = kHeads;
  o.attention.num_groups = groups;
  o.positions.max_length = 4;
  o.vocabulary.size = kVocabulary;
  return completed(o);
}

// Element i of each tensor is i.
PyValue::Tensor counting(const Shape& shape) {
  return {DType::fp32, shape, {[shape] {
            std::vector<float> numbers(static_cast<std::size_t>(shape.numel()));
            std::iota(numbers.begin(), numbers.end(), 0.0f);
            const auto bytes = std::as_bytes(std::span(numbers));
            return std::vector(bytes.begin(), bytes.end());
          }}};
}

PyValue arguments(std::int64_t groups, int tensor, bool knows_fpdt) {
  PyValue::Dict members = {{"num_layers", 1},
                           {"hidden_size", kHidden},
                           {"num_attention_heads", kHeads},
                           {"num_key_value_heads", groups},
                           {"max_position_embeddings", 4},
                           {"padded_vocab_size", kVocabulary},
                           {"tensor_model_parallel_size", tensor}};
  if (knows_fpdt) {
    members.emplace_back("ds_sequence_parallel_fpdt", false);
  }
  return PyValue::Object{{"argparse", "Namespace"}, members};
}

struct Case {
  int tensor = 1;
  bool knows_fpdt = true, universal = false;
  std::int64_t groups = kHeads;
};

fs::path write(const fs::path& folder, const Case& c) {
  fs::create_directories(folder);
  const int ranks = c.universal ? 1 : c.tensor;
  const MegatronNames names(model(c.groups), ranks, kVocabulary, QkvOrder::by_head);
  for (int rank = 0; rank < c.tensor; ++rank) {
    PyValue::Dict file = {{"args", arguments(c.groups, c.tensor, c.knows_fpdt)},
                          {"checkpoint_version", 3.0},
                          {"iteration", 1}};
    PyValue::Dict module;
    for (const auto& [name, entry] : names.entries()) {
      module.emplace_back(name, counting(names.local_shape(entry, name)));
    }
    if (!c.universal) {
      file.emplace_back("module", module);
    }
    write_torch_file(folder / concat("mp_rank_0", rank, "_model_states.pt"), file);
    for (const auto& [name, value] : c.universal ? module : PyValue::Dict()) {
      const fs::path place = folder / "zero" / std::get<std::string>(name.get());
      fs::create_directories(place);
      write_torch_file(place / "fp32.pt", PyValue::Dict{{"param", value}});
    }
  }
  return folder;
}

// Of a matrix of ours [heads, 3, width, hidden] the first element of each row, row by row: where it
// lay in the file of its rank.
std::vector<std::int64_t> rows(const CheckpointReader& reader) {
  const Shape shape = reader.tensor(kQkv).shape;
  std::vector<float> numbers(static_cast<std::size_t>(shape.numel()));
  reader.read(kQkv, Box::whole(shape), std::as_writable_bytes(std::span(numbers)));
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < numbers.size(); i += kHidden) {
    found.push_back(static_cast<std::int64_t>(numbers[i]) / kHidden);
  }
  return found;
}

// mixed[:third], mixed[third:2 third] and the rest of a rank's output are all its queries, keys and
// values; a universal checkpoint has the ranks' rows one after another.
std::vector<std::int64_t> thirds(const Case& c) {
  const std::int64_t heads = kHeads / c.tensor, third = heads * kWidth;
  std::vector<std::int64_t> expected;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const std::int64_t rank = head / heads, first = c.universal ? rank * 3 * third : 0;
    for (std::int64_t kind = 0; kind < 3; ++kind) {
      for (std::int64_t channel = 0; channel < kWidth; ++channel) {
        expected.push_back(first + kind * third + head % heads * kWidth + channel);
      }
    }
  }
  return expected;
}

std::vector<std::int64_t> by_head(const Case& c) {
  std::vector<std::int64_t> expected(3 * kHidden);
  std::iota(expected.begin(), expected.end(), 0);
  for (std::int64_t& row : expected) {
    row %= c.universal ? 3 * kHidden : 3 * kHidden / c.tensor;
  }
  return expected;
}

class Thirds : public ::testing::Test {
 protected:
  CheckpointReader read(const Case& c, std::optional<QkvOrder> qkv = std::nullopt) {
    return open_foreign(write(folder_.path() / std::to_string(count_++), c), open_input_file,
                        {.qkv = qkv, .log = Log(0, 1, LogLevel::error)});
  }
  TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(Thirds, AreKnownByTheArgumentsThatCameWithThem) {
  for (const bool universal : {false, true}) {
    for (const int tensor : {1, 2}) {
      const Case since{.tensor = tensor, .universal = universal};
      Case before = since;
      before.knows_fpdt = false;
      EXPECT_EQ(rows(read(since)), thirds(since)) << tensor << universal;
      EXPECT_EQ(rows(read(before)), by_head(before)) << tensor << universal;
      EXPECT_EQ(rows(read(since, QkvOrder::by_head)), by_head(since)) << tensor << universal;
      EXPECT_EQ(rows(read(before, QkvOrder::thirds)), thirds(before)) << tensor << universal;
    }
  }
}

TEST_F(Thirds, ReadingThemSaysSoAndGroupsOfQueriesAreRefused) {
  const fs::path folder = write(folder_.path() / "said", {});
  ::testing::internal::CaptureStderr();
  open_foreign(folder);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("thirds"), std::string::npos) << said;
  EXPECT_NE(said.find("--qkv-layout heads"), std::string::npos) << said;
  EXPECT_NO_THROW(read({.knows_fpdt = false, .groups = 2}));
  EXPECT_NO_THROW(read({.groups = 2}, QkvOrder::by_head));
  try {
    read({.groups = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("thirds"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace bloomery
