// Files of torch.save made by tools/golden/hf.py, and what is left of them after damage.
#include "checkpoint/pickle/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "harness/shared_data.h"

namespace bloomery {
namespace {

template <class T>
std::vector<T> values(const TorchFile& file, const std::string& name) {
  const std::vector<std::byte> bytes = file.bytes(name);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

using Contents = std::map<std::string, std::vector<std::byte>>;

// What reading the file says; empty when it can be read, and then `contents` has its tensors.
std::string complaint(const std::string& bytes, Contents* contents = nullptr) {
  try {
    const TorchFile file(
        std::make_unique<MemoryBytes>(std::as_bytes(std::span(bytes)), "test.bin"));
    for (const auto& [name, entry] : file.entries()) {
      auto tensor = file.bytes(name);
      if (contents != nullptr) {
        contents->emplace(name, std::move(tensor));
      }
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class TorchFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchFiles, TensorsAreContiguousWhateverTheirViews) {
  const TemporaryFolder folder;
  const TorchFile file(
      folder.file("weights.bin", golden_file(concat("hf/files/", GetParam(), ".bin"))));
  EXPECT_EQ(file.entries().size(), 12u);
  std::vector<float> plain(24), transposed, steps;
  for (int i = 0; i < 24; ++i) {
    plain[static_cast<std::size_t>(i)] = static_cast<float>(i);
    transposed.push_back(static_cast<float>(i % 4 * 6 + i / 4));
  }
  for (int row = 1; row < 4; ++row) {
    for (int column = 0; column < 6; column += 2) {
      steps.push_back(static_cast<float>(row * 6 + column));
    }
  }
  EXPECT_EQ(values<float>(file, "plain"), plain);
  EXPECT_EQ(values<float>(file, "transposed"), transposed);
  EXPECT_EQ(file.entry("transposed").shape, (Shape{6, 4}));
  EXPECT_EQ(values<float>(file, "part"), (std::vector<float>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(values<float>(file, "steps"), steps);
  EXPECT_EQ(values<float>(file, "scalar"), std::vector<float>{2.5f});
  EXPECT_EQ(file.entry("scalar").shape, Shape{});
  EXPECT_TRUE(file.bytes("empty").empty());
  EXPECT_EQ(values<std::int64_t>(file, "long"), (std::vector<std::int64_t>{1, -2, 1ll << 40}));
  EXPECT_EQ(values<unsigned char>(file, "flag"), (std::vector<unsigned char>{1, 0}));
  EXPECT_EQ(values<unsigned char>(file, "byte"), (std::vector<unsigned char>{7, 255}));
  EXPECT_EQ(values<std::uint16_t>(file, "half"), std::vector<std::uint16_t>{0x3E00});
  EXPECT_EQ(values<std::uint16_t>(file, "bf16"), std::vector<std::uint16_t>{0x3FC0});
  EXPECT_EQ(values<double>(file, "double"), std::vector<double>{0.1});
  EXPECT_EQ(file.entry("plain").storage.key, file.entry("transposed").storage.key);
}

TEST_P(TorchFiles, DtypesAreKeptAndUnknownOnesRefusedWhenRead) {
  const TemporaryFolder folder;
  const TorchFile file(
      folder.file("weights.bin", golden_file(concat("hf/files/", GetParam(), ".bin"))));
  Device device({.num_threads = 1});
  Stream stream(device);
  EXPECT_EQ(file.read(stream, "bf16").dtype(), DType::bf16);
  EXPECT_EQ(file.read(stream, "long").to_host<std::int64_t>(stream).at(2), 1ll << 40);
  EXPECT_THROW(file.read(stream, "flag"), Error);
}

// Every prefix is refused. A flipped bit is found or without effect: zip archives have checksums;
// the older form has none, so there a number may change.
TEST_P(TorchFiles, DamageIsAnErrorAndNeverWorse) {
  const std::string whole = golden_file(concat("hf/files/", GetParam(), ".bin"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(complaint(whole.substr(0, length)), "") << length;
  }
  Contents sound;
  ASSERT_EQ(complaint(whole, &sound), "");
  const bool checksums = std::string_view(GetParam()) != "views_legacy";
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    Contents contents;
    const bool found = !complaint(flipped, &contents).empty();
    EXPECT_TRUE(found || !checksums || contents == sound) << "bit " << bit;
  }
}

// Someone else writes to the file while it is open: an Error, not a signal.
TEST_P(TorchFiles, AFileThatShrinksInUseIsAnError) {
  const TemporaryFolder folder;
  const auto path =
      folder.file("weights.bin", golden_file(concat("hf/files/", GetParam(), ".bin")));
  const TorchFile file(path);
  std::filesystem::resize_file(path, 100);
  EXPECT_THROW(file.bytes("plain"), Error);
}

INSTANTIATE_TEST_SUITE_P(Forms, TorchFiles,
                         ::testing::Values("views", "views_legacy", "views_protocol4",
                                           "views_deflated"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TorchFile, NamesTheObjectItRefuses) {
  const auto refused = [](const std::string& name) {
    return complaint(golden_file("hf/files/" + name));
  };
  EXPECT_NE(refused("refused_date.bin").find("datetime.date"), std::string::npos);
  EXPECT_NE(refused("refused_module.bin").find("torch.nn.modules.linear.Linear"),
            std::string::npos);
  EXPECT_NE(refused("refused_call.bin").find("posix.system"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("executed"));
}

TEST(TorchFile, OtherFilesAreRecognised) {
  EXPECT_NE(complaint("").find("not a file of torch.save"), std::string::npos);
  EXPECT_NE(complaint("some text").find("not a file of torch.save"), std::string::npos);
  EXPECT_NE(complaint("PK and no more").find("not a zip archive"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
