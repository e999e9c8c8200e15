#include "checkpoint/megatron/foreign.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "checkpoint/convert.h"
#include "checkpoint/folder.h"
#include "checkpoint/megatron/foreign_case.h"
#include "checkpoint/megatron/names.h"
#include "checkpoint/pickle/torch_file.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Sums = std::map<std::string, std::uint32_t>;

nlohmann::json foreign_expectations() {
  return nlohmann::json::parse(golden_file("foreign/expected.json"));
}

Sums checksums(const CheckpointReader& reader) {
  Sums sums;
  for (const std::string& name : reader.names()) {
    const ManifestTensor& tensor = reader.tensor(name);
    std::vector<std::byte> bytes(tensor.bytes());
    reader.read(name, Box::whole(tensor.shape), bytes);
    sums[name] = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  return sums;
}

Sums without_padding(Sums sums) {
  std::erase_if(sums,
                [](const auto& each) { return each.first.find("/padding") != std::string::npos; });
  return sums;
}

const std::set<std::string> kHalf = {"mega_fp16_t2p1", "mega_fp16_dist", "ds_fp16_t2p1z0",
                                     "ds_fp16_t1p2z1", "ds_fp16_d2z3",   "ds_moe_residual",
                                     "ds_moe_t2e2et",  "ds_moe_e2z0",    "ds_moe_t2e2z1",
                                     "mega_t5_t2p2",   "mega_fp16_p4v2", "mega_fp16_v1"};

const std::set<std::string> kSingle = {"mega_fp32_t1p1", "mega_bert_t1p1", "mega_bert_plain",
                                       "mega_t5_t1p1", "mega_fp32_v0"};

class Foreign : public ::testing::TestWithParam<std::string> {
 protected:
  CheckpointReader open(const fs::path& path) const {
    return *find_newest(path, nullptr, Log(0, 1, LogLevel::error));
  }
  fs::path convert(const fs::path& input, const std::string& name, ModelForm to,
                   const ForeignLayout& layout) {
    const fs::path output = folder_.path() / name;
    convert_model(stream_, {.input = input, .output = output, .to = to, .layout = layout},
                  Log(0, 1, LogLevel::error));
    return output;
  }

  TemporaryFolder folder_;
  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_P(Foreign, EveryTensorIsTheirsBitForBit) {
  const CheckpointReader reader = open(unpack_foreign(GetParam(), folder_.path()));
  const auto expected = foreign_expectations()[GetParam()]["tensors"].get<Sums>();
  EXPECT_EQ(checksums(reader), expected);
  EXPECT_EQ(reader.state().step, 2);
  EXPECT_EQ(reader.state().consumed_samples, 8);
  // DeepSpeed's optimizer of fp16 without ZeRO takes a step on nothing when it is made.
  const bool extra_step = GetParam() == "ds_fp16_t2p1z0" || GetParam() == "ds_moe_e2z0";
  EXPECT_EQ(reader.state().extra.at("optimizer_steps"), extra_step ? "3" : "2");
  EXPECT_EQ(reader.state().extra.at("schedule_position"), "8");
  const ModelRecord record = model_record(reader.state(), "test");
  const bool fp16 = kHalf.contains(GetParam());
  EXPECT_EQ(record.dtype, kSingle.contains(GetParam()) ? DType::fp32
                          : fp16                       ? DType::fp16
                                                       : DType::bf16);
  EXPECT_EQ(reader.state().loss_scale.scale, fp16 ? 1024 : 1);
  EXPECT_EQ(record.model.vocabulary.size, 21);
}

TEST_P(Foreign, WrittenForOtherRanksItIsTheSame) {
  const fs::path source = unpack_foreign(GetParam(), folder_.path());
  const CheckpointReader before = open(source);
  int count = 0;
  const auto is = [](const char* word) { return GetParam().find(word) != std::string::npos; };
  const bool experts = is("moe");
  using Forms = std::vector<ModelForm>;
  using Layouts = std::vector<ForeignLayout>;
  for (const ModelForm form :
       experts ? Forms{ModelForm::deepspeed}
       : is("bert") || is("_t5")
           ? Forms{ModelForm::megatron}
           : Forms{ModelForm::megatron, ModelForm::deepspeed, ModelForm::universal}) {
    for (const ForeignLayout layout :
         experts ? Layouts{{1, 1, 1}, {2, 2, 1}, {1, 2, 2}, {2, 1, 2}} : Layouts{{1, 1}, {2, 2}}) {
      const CheckpointReader after = open(convert(source, std::to_string(count++), form, layout));
      EXPECT_EQ(without_padding(checksums(after)), without_padding(checksums(before)));
      EXPECT_EQ(after.state().step, 2);
      EXPECT_EQ(after.state().consumed_samples, 8);
      for (const char* name : {"optimizer_steps", "schedule_position", "schedule", "model"}) {
        EXPECT_EQ(after.state().extra.at(name), before.state().extra.at(name)) << name;
      }
      if (form != ModelForm::universal) {
        EXPECT_EQ(after.state().loss_scale, before.state().loss_scale);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Foreign,
                         ::testing::Values("mega_fp32_t1p1", "mega_fp16_t2p1", "mega_bf16_t2p2",
                                           "mega_fp16_dist", "mega_llama_t2p1", "ds_bf16_t2p2z1",
                                           "ds_fp16_t2p1z0", "ds_fp16_t1p2z1", "ds_bf16_d2z2",
                                           "ds_fp16_d2z3", "ds_universal", "ds_moe_e2d2z1",
                                           "ds_moe_residual", "ds_moe_t2e2z1", "ds_moe_t2e2et",
                                           "ds_moe_e2z0", "ds_moe_p2e2z1", "mega_bert_t1p1",
                                           "mega_bert_t2p2", "mega_bert_plain", "mega_t5_t1p1",
                                           "mega_t5_t2p2", "mega_bf16_p4v2", "mega_fp16_p4v2",
                                           "mega_fp32_v0", "mega_fp16_v1"),
                         [](const auto& info) { return info.param; });

using ForeignFolders = Foreign;

TEST_F(ForeignFolders, TheLatestIsWhatTheTrackerSays) {
  const fs::path source = unpack_foreign("mega_fp32_t1p1", folder_.path());
  const fs::path save = source.parent_path();
  EXPECT_FALSE(foreign_checkpoint(save));
  std::ofstream(save / "latest_checkpointed_iteration.txt") << "2\n";
  EXPECT_EQ(*foreign_checkpoint(save), source);
  EXPECT_EQ(*foreign_checkpoint(source), source);
  std::ofstream(save / "latest_checkpointed_iteration.txt") << "3";
  EXPECT_THROW(foreign_checkpoint(save), Error);
  fs::rename(source, save / "release");
  std::ofstream(save / "latest_checkpointed_iteration.txt") << "release";
  EXPECT_EQ(open(save).state().step, 2);
  std::ofstream(save / "latest") << "../elsewhere";
  EXPECT_THROW(foreign_checkpoint(save), Error);
}

TEST_F(ForeignFolders, AMissingRankIsAnError) {
  const fs::path megatron = unpack_foreign("mega_bf16_t2p2", folder_.path());
  fs::remove_all(megatron / "mp_rank_01_000");
  EXPECT_THROW(open(megatron), Error);
  for (const char* file : {"layer_02-model_01-model_states.pt", "mp_rank_03_model_states.pt",
                           "bf16_zero_pp_rank_0_mp_rank_02_optim_states.pt"}) {
    const fs::path deepspeed = unpack_foreign("ds_bf16_t2p2z1", folder_.path());
    fs::remove(deepspeed / file);
    if (std::string_view(file).starts_with("layer")) {
      EXPECT_NO_THROW(open(deepspeed));  // the optimizer's weights are enough
    } else {
      EXPECT_THROW(open(deepspeed), Error) << file;
    }
  }
}

std::string refusal(const fs::path& checkpoint) {
  try {
    open_foreign(checkpoint, open_input_file, {.log = Log(0, 1, LogLevel::error)});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (item.is_regular_file()) {
      files.push_back(item.path());
    }
  }
  return files;
}

// Whichever file is gone, what can be read all the same has every tensor, with the same bits.
TEST_F(ForeignFolders, AMissingFileIsNamedOrMakesNoDifference) {
  const fs::path aside = folder_.path() / "aside";
  for (const char* name : {"ds_bf16_t2p2z1", "ds_fp16_t2p1z0", "ds_moe_e2d2z1", "ds_moe_t2e2et",
                           "ds_universal", "mega_bf16_t2p2"}) {
    const fs::path checkpoint = unpack_foreign(name, folder_.path());
    const auto weights = [&] {
      Sums sums =
          checksums(open_foreign(checkpoint, open_input_file, {.log = Log(0, 1, LogLevel::error)}));
      std::erase_if(sums, [](const auto& each) { return each.first.find('/') != each.first.npos; });
      return sums;
    };
    const Sums whole = weights();
    for (const fs::path& file : files_below(checkpoint)) {
      fs::rename(file, aside);
      if (refusal(checkpoint).empty()) {
        EXPECT_EQ(weights(), whole) << file;
      }
      fs::rename(aside, file);
    }
  }
}

TEST_F(ForeignFolders, GapsBetweenLayersAreNamed) {
  const fs::path checkpoint = unpack_foreign("ds_bf16_t2p2z1", folder_.path());
  for (const fs::path& file : files_below(checkpoint)) {
    if (file.string().ends_with("optim_states.pt")) {
      fs::remove(file);
    }
  }
  EXPECT_EQ(refusal(checkpoint), "");  // layers alone are a model
  fs::remove(checkpoint / "layer_03-model_01-model_states.pt");
  EXPECT_NE(refusal(checkpoint).find("layer_03-model_01-model_states.pt"), std::string::npos)
      << refusal(checkpoint);
  fs::remove(checkpoint / "layer_03-model_00-model_states.pt");
  for (const char* part : {"blocks.1.*", "layer_03-model_00-model_states.pt",
                           "layer_03-model_01-model_states.pt", "copy the checkpoint once more"}) {
    EXPECT_NE(refusal(checkpoint).find(part), std::string::npos) << refusal(checkpoint);
  }
}

// Ours is [heads, kinds, channels, hidden]; old versions put the kinds elsewhere.
void expect_old_orders(const std::string& family, const std::string& name, int kinds) {
  ModelOptions options{.family = family, .num_layers = 1, .hidden_size = 4};
  find_family(family).defaults(options);
  options.attention.num_heads = 2;
  options.positions.max_length = 4;
  options.vocabulary.size = 8;
  options = completed(options);
  for (const int ranks : {1, 2}) {
    for (const QkvOrder order : {QkvOrder::by_kind, QkvOrder::by_channel}) {
      const MegatronNames names(options, ranks, 8, order);
      const MegatronNames::Entry& entry = *names.find(name);
      EXPECT_EQ(entry.shape, (Shape{2, kinds, 2, 4}));
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<std::int64_t> rows;  // of ours, in the order of the file
        for (const TensorPart& part : names.segments(entry, rank)) {
          for (std::int64_t i = 0; i < part.box.extent.numel(); i += 4) {
            rows.push_back(part.box.global_index(i) / 4);
          }
        }
        std::vector<std::int64_t> expected;
        const int heads = 2 / ranks;
        for (int i = 0; i < heads * kinds * 2; ++i) {
          const int kind = order == QkvOrder::by_kind ? i / (heads * 2) : i % kinds;
          const int head = order == QkvOrder::by_kind ? i / 2 % heads : i / (kinds * 2);
          const int channel = order == QkvOrder::by_kind ? i % 2 : i / kinds % 2;
          expected.push_back(((rank * heads + head) * kinds + kind) * 2 + channel);
        }
        EXPECT_EQ(rows, expected);
      }
    }
  }
}

TEST(MegatronNames, OldOrdersOfQueriesKeysAndValues) {
  expect_old_orders("gpt", "language_model.encoder.layers.0.self_attention.query_key_value.weight",
                    3);
  expect_old_orders("t5", "language_model.decoder.layers.0.inter_attention.key_value.weight", 2);
}

TEST_F(ForeignFolders, ExactWeightsAreAFileOfTheirs) {
  const fs::path source = unpack_foreign("ds_bf16_d2z2", folder_.path());
  const TorchFile file(convert(source, "exact", ModelForm::exact_weights, {}) /
                       "pytorch_model.bin");
  EXPECT_EQ(file.entries().size(), 28u);
  const auto& words = file.entry("language_model.embedding.word_embeddings.weight");
  EXPECT_EQ(words.shape, (Shape{24, 8}));
  const auto bytes = file.bytes("language_model.encoder.layers.1.mlp.dense_h_to_4h.weight");
  EXPECT_EQ(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            foreign_expectations()["ds_bf16_d2z2"]["tensors"]["blocks.1.mlp.up.weight"]
                .get<std::uint32_t>());
}

}  // namespace
}  // namespace bloomery
