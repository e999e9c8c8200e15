// Files that are damaged or made to do harm: an Error each, nothing executed, memory bounded.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include "checkpoint/folder.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/megatron/foreign_case.h"
#include "checkpoint/pickle/torch_writer.h"
#include "checkpoint/pickle/zip_writer.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// All numbers of a checkpoint; empty when it is refused, and then `said` is why.
std::string contents(const fs::path& checkpoint, std::string* said = nullptr) {
  try {
    const CheckpointReader reader = open_foreign(checkpoint);
    std::string all;
    for (const std::string& name : reader.names()) {
      const ManifestTensor& tensor = reader.tensor(name);
      std::vector<std::byte> bytes(tensor.bytes());
      reader.read(name, Box::whole(tensor.shape), bytes);
      all += name;
      all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return all;
  } catch (const Error& error) {
    if (said != nullptr) {
      *said = error.what();
    }
    return "";
  }
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Of flipped bits only those that hit nothing that counts are without effect.
TEST(HostileForeign, DamageIsAnErrorOrWithoutEffect) {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  int refused = 0, rounds = 0;
  const long before = peak_kilobytes();
  for (const char* name :
       {"mega_fp16_dist", "ds_bf16_d2z2", "ds_fp16_d2z3", "ds_moe_t2e2z1", "ds_moe_e2z0"}) {
    const fs::path checkpoint = unpack_foreign(name, folder.path());
    const std::string sound = contents(checkpoint);
    ASSERT_FALSE(sound.empty());
    std::vector<fs::path> files;
    for (const auto& item : fs::recursive_directory_iterator(checkpoint)) {
      // Of stage 3's model states the first rank's are enough.
      const bool read = item.path().filename() != "zero_pp_rank_1_mp_rank_00_model_states.pt";
      if (item.is_regular_file() && read) {
        files.push_back(item.path());
      }
    }
    for (int round = 0; round < 420; ++round, ++rounds) {
      const fs::path& file = files[random() % files.size()];
      const std::string good = read_file(file);
      std::string bad = good;
      const std::size_t at = random() % good.size();
      if (round % 4 == 3) {
        bad.resize(at);
      } else {
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      }
      overwrite(file, bad);
      const std::string found = contents(checkpoint);
      refused += found.empty() ? 1 : 0;
      EXPECT_TRUE(found.empty() || (round % 4 != 3 && found == sound)) << file << " at " << at;
      overwrite(file, good);
    }
  }
  EXPECT_EQ(rounds, 2100);
  EXPECT_GT(refused, rounds / 2);
  EXPECT_LT(peak_kilobytes() - before, 300 << 10);
}

PyValue rank_file(PyValue model, PyValue arguments) {
  return PyValue::Dict{{"args", std::move(arguments)},
                       {"checkpoint_version", 3.0},
                       {"iteration", 1},
                       {"model", std::move(model)}};
}

PyValue arguments(std::int64_t layers, std::int64_t vocabulary) {
  return PyValue::Object{{"argparse", "Namespace"},
                         {{"num_layers", layers},
                          {"hidden_size", 8},
                          {"num_attention_heads", 2},
                          {"max_position_embeddings", 8},
                          {"padded_vocab_size", vocabulary}}};
}

class Malicious : public ::testing::Test {
 protected:
  Malicious() { fs::create_directories(rank()); }
  fs::path rank() const { return folder_.path() / "iter_0000001" / "mp_rank_00"; }
  std::string refusal() const {
    std::string said;
    EXPECT_EQ(contents(folder_.path() / "iter_0000001", &said), "");
    return said;
  }
  std::string refusal(const PyValue& file) const {
    write_torch_file(rank() / "model_optim_rng.pt", file);
    return refusal();
  }
  // A file with the pickle as it stands.
  std::string refusal_of_pickle(const std::string& pickle) const {
    AtomicFile file(rank() / "model_optim_rng.pt");
    ZipWriter zip(file);
    zip.add("archive/data.pkl", std::as_bytes(std::span(pickle)));
    zip.finish();
    file.commit();
    return refusal();
  }
  TemporaryFolder folder_;
};

TEST_F(Malicious, WhatRunsCodeIsRefusedByName) {
  const std::pair<const char*, const char*> calls[] = {{"posix", "system"},
                                                       {"os", "system"},
                                                       {"os", "popen"},
                                                       {"subprocess", "Popen"},
                                                       {"builtins", "eval"},
                                                       {"builtins", "exec"},
                                                       {"__builtin__", "eval"},
                                                       {"builtins", "getattr"},
                                                       {"builtins", "__import__"},
                                                       {"runpy", "run_path"},
                                                       {"importlib", "import_module"},
                                                       {"sys", "exit"},
                                                       {"shutil", "rmtree"},
                                                       {"socket", "socket"},
                                                       {"ctypes", "CDLL"},
                                                       {"pty", "spawn"},
                                                       {"nt", "system"},
                                                       {"pickle", "loads"},
                                                       {"code", "interact"},
                                                       {"operator", "attrgetter"},
                                                       {"types", "FunctionType"},
                                                       {"torch.hub", "x.load"},
                                                       {"webbrowser", "open"},
                                                       {"marshal", "loads"}};
  for (const auto& [module, name] : calls) {
    const std::string said =
        refusal(rank_file(PyValue::Call{{module, name}, {"touch executed"}}, arguments(1, 16)));
    EXPECT_NE(said.find("runs code"), std::string::npos) << module << ' ' << name << ": " << said;
  }
  EXPECT_FALSE(fs::exists("executed"));
}

TEST_F(Malicious, OtherClassesAreValuesWithoutAMeaning) {
  const std::string said = refusal(
      rank_file(PyValue::Object{{"somebody.code", "Model"}, {{"weight", 1}}}, arguments(1, 16)));
  EXPECT_NE(said.find("is no dict"), std::string::npos) << said;
}

TEST_F(Malicious, SizesOutOfReach) {
  EXPECT_FALSE(refusal(rank_file(PyValue::Dict{}, arguments(std::int64_t{1} << 50, 16))).empty());
  EXPECT_FALSE(refusal(rank_file(PyValue::Dict{}, arguments(900000, 16))).empty());
  EXPECT_FALSE(refusal(rank_file(PyValue::Dict{}, arguments(1, std::int64_t{1} << 39))).empty());
  EXPECT_FALSE(refusal(rank_file(PyValue::Dict{}, arguments(-1, 16))).empty());
  EXPECT_FALSE(refusal(rank_file(PyValue::Dict{}, arguments(1, 0))).empty());
}

TEST_F(Malicious, NestedAndEndlessObjects) {
  PyValue deep = PyValue::Dict{};
  for (int i = 0; i < 1000; ++i) {
    deep = PyValue::Dict{{"below", std::move(deep)}};
  }
  EXPECT_NE(refusal(rank_file(std::move(deep), arguments(1, 16))).find("nested"),
            std::string::npos);
  using std::string_literals::operator""s;
  // A dict that contains itself, as the model.
  const std::string cycle =
      "\x80\x02}q\x00X\x05\0\0\0modelh\x00sX\x04\0\0\0args}(X\x0a\0\0\0num_layersK\x01X\x0b\0\0\0hidden_sizeK\x08X\x13\0\0\0num_attention_headsK\x02X\x17\0\0\0max_position_embeddingsK\x08X\x11\0\0\0padded_vocab_sizeK\x10us."s;
  EXPECT_FALSE(refusal_of_pickle(cycle).empty());
  EXPECT_FALSE(refusal_of_pickle("\x80\x02" + std::string(1 << 22, '(') + ".").empty());
  EXPECT_FALSE(refusal_of_pickle("\x80\x02" + std::string(1 << 22, ']') + ".").empty());
  EXPECT_FALSE(refusal_of_pickle("\x80\x02X\xff\xff\xff\x7f").empty());
  EXPECT_FALSE(refusal_of_pickle("").empty());
}

// A few kilobytes that claim to unpack to gigabytes.
TEST_F(Malicious, BombsDoNotGoOff) {
  const std::string zeros(std::size_t{64} << 20, '\0');
  std::string packed(1 << 20, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  {
    AtomicFile file(rank() / "model_optim_rng.pt");
    ZipWriter zip(file);
    zip.add("archive/data.pkl", std::as_bytes(std::span(packed)));
    zip.finish();
    file.commit();
  }
  std::string bytes = read_file(rank() / "model_optim_rng.pt");
  const std::size_t directory = bytes.rfind("PK\x01\x02");
  bytes[directory + 10] = 8;  // packed by deflate
  for (const std::uint32_t size : {std::uint32_t{64} << 20, std::uint32_t{0xF0000000}}) {
    std::memcpy(bytes.data() + directory + 24, &size, sizeof size);
    overwrite(rank() / "model_optim_rng.pt", bytes);
    const long before = peak_kilobytes();
    EXPECT_FALSE(refusal().empty());
    EXPECT_LT(peak_kilobytes() - before, 200 << 10);
  }
}

// Experts that the arguments or the files make up.
TEST_F(Malicious, ExpertsOutOfReach) {
  const fs::path step = folder_.path() / "global_step1";
  fs::create_directories(step);
  bool data_first = false;
  const auto refused = [&](std::int64_t layers, PyValue experts, std::int64_t ranks,
                           const std::string& key) {
    const PyValue all = arguments(layers, 16);
    PyValue::Object args = std::get<PyValue::Object>(all.get());
    args.attributes.emplace_back("num_experts", std::move(experts));
    args.attributes.emplace_back("expert_interval", 1);
    args.attributes.emplace_back("moe_expert_parallel_size", ranks);
    write_torch_file(
        step / "mp_rank_00_model_states.pt",
        PyValue::Dict{
            {"args", args},
            {"iteration", 1},
            {"module", PyValue::Dict{}},
            {"ds_config", PyValue::Dict{{"use_data_before_expert_parallelism", data_first}}}});
    const PyValue::Tensor few{DType::fp32, Shape{8}, {[] { return std::vector<std::byte>(32); }}};
    for (const char* name : {"layer_0_expert_0_mp_rank_00", "layer_0_expert_1_mp_rank_00"}) {
      write_torch_file(step / concat(name, "_model_states.pt"), PyValue::Dict{{key, few}});
    }
    std::string said;
    EXPECT_EQ(contents(step, &said), "");
    return said;
  };
  const std::string path = "language_model.encoder.layers.0.mlp.deepspeed_moe.experts.";
  const std::string sound = path + "deepspeed_experts.0.dense_4h_to_h.bias";
  const long before = peak_kilobytes();
  for (const std::int64_t count : {std::int64_t{3}, std::int64_t{1} << 20, std::int64_t{1} << 38}) {
    EXPECT_NE(refused(1, PyValue::List{count}, 1, sound).find("expert"), std::string::npos);
  }
  EXPECT_NE(refused(90000, PyValue::List{2}, 1, sound).find("experts"), std::string::npos);
  for (const std::int64_t ranks : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 33}) {
    EXPECT_FALSE(refused(1, PyValue::List{2}, ranks, sound).empty()) << ranks;
  }
  for (const char* key : {"deepspeed_experts.7.dense_4h_to_h.bias", "deepspeed_experts..bias",
                          "deepspeed_experts.99999999999999999999.dense_4h_to_h.bias", "bias"}) {
    EXPECT_NE(refused(1, PyValue::List{2}, 1, path + key).find("no tensor"), std::string::npos);
  }
  EXPECT_NE(refused(1, PyValue::List{2}, 1, "language_model.encoder.final_layernorm.weight")
                .find("of no expert"),
            std::string::npos);
  data_first = true;
  EXPECT_NE(refused(1, PyValue::List{2}, 1, sound).find("order of experts"), std::string::npos);
  EXPECT_LT(peak_kilobytes() - before, 200 << 10);
}

// Tensors that say more than their storages hold.
TEST_F(Malicious, TensorsBeyondTheirStorages) {
  const PyValue::Tensor few{DType::fp32, Shape{4}, {[] { return std::vector<std::byte>(16); }}};
  const auto model = [&](PyValue value) {
    return PyValue::Dict{
        {"language_model",
         PyValue::Dict{{"encoder", PyValue::Dict{{"final_layernorm.weight", std::move(value)}}}}}};
  };
  EXPECT_NE(refusal(rank_file(model(few), arguments(1, 16))).find("4 elements, but 8"),
            std::string::npos);
}

}  // namespace
}  // namespace bloomery
