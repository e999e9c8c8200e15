#include "tensor/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "tensor/safetensors_writer.h"

namespace bloomery {
namespace {

class SafetensorsTest : public ::testing::Test {
 protected:
  ~SafetensorsTest() override { std::filesystem::remove(path_); }

  // A file from a header and the number of data bytes.
  void write_raw(const std::string& header, std::size_t data_bytes) {
    const std::uint64_t length = header.size();
    std::string text(reinterpret_cast<const char*>(&length), 8);
    write_bytes(text + header + std::string(data_bytes, 'd'));
  }
  void write_bytes(const std::string& text) {
    AtomicFile file(path_);
    file.write(text);
    file.commit();
  }
  std::string open_error() {
    try {
      const SafetensorsFile file(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / concat("bloomery_", getpid(), ".safetensors");
  Device device_;
  Stream stream_{device_};
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(SafetensorsTest, RoundTripOfEveryType) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : {DType::uint8, DType::fp16, DType::bf16, DType::fp32, DType::int32,
                            DType::fp64, DType::int64}) {
    const Tensor tensor = Tensor::empty(stream_, dtype, {3, 5});
    for (std::size_t i = 0; i < tensor.bytes(); ++i) {
      static_cast<unsigned char*>(tensor.data())[i] =
          static_cast<unsigned char>(31 * i + static_cast<std::size_t>(dtype));
    }
    tensors.emplace_back(concat("layer.", name(dtype)), tensor);
  }
  tensors.emplace_back("scalar", Tensor::from_host<float>(stream_, {2.5f}, {}));
  tensors.emplace_back("empty", Tensor::empty(stream_, DType::fp32, {0, 7}));
  write_safetensors(path_, stream_, tensors, {{"format", "pt"}, {"näme", "a \"quote\"\n"}});

  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"näme", "a \"quote\"\n"}}));
  EXPECT_EQ(file.names().size(), tensors.size());
  const std::map<std::string, Tensor> all = file.read_all(stream_);
  for (const auto& [name, tensor] : tensors) {
    const Tensor& copy = all.at(name);
    EXPECT_EQ(copy.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(copy.shape(), tensor.shape()) << name;
    EXPECT_EQ(std::memcmp(copy.data(), tensor.data(), tensor.bytes()), 0) << name;
    EXPECT_EQ((file.data_offset() + file.entry(name).begin) % size_of(tensor.dtype()), 0u);
  }
  EXPECT_FALSE(file.contains("absent"));
  EXPECT_THROW(file.read(stream_, "absent"), Error);
}

TEST_F(SafetensorsTest, NoTensors) {
  write_safetensors(path_, stream_, {});
  EXPECT_TRUE(SafetensorsFile(path_).entries().empty());
}

TEST_F(SafetensorsTest, NamesMustBeUniqueAndFree) {
  const Tensor tensor = Tensor::zeros(stream_, DType::fp32, {1});
  EXPECT_THROW(write_safetensors(path_, stream_, {{"a", tensor}, {"a", tensor}}), Error);
  EXPECT_THROW(write_safetensors(path_, stream_, {{"__metadata__", tensor}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SafetensorsTest, TensorsComeInAnyOrderAndEachOnce) {
  const Tensor wide = Tensor::from_host<float>(stream_, {1, 2, 3}, {3});
  const Tensor narrow = Tensor::zeros(stream_, DType::bf16, {2, 2});
  write_safetensors(path_, stream_, {{"b", wide}, {"a", narrow}, {"c", wide}});
  const std::string expected = read_file(path_);
  std::filesystem::remove(path_);
  SafetensorsWriter file(path_, {{"a", narrow.dtype(), narrow.shape()},
                                 {"b", wide.dtype(), wide.shape()},
                                 {"c", wide.dtype(), wide.shape()}});
  file.write("c", wide);
  file.write("a", narrow);
  EXPECT_THROW(file.write("a", narrow), Error);
  EXPECT_THROW(file.write("b", narrow), Error);  // of another size
  EXPECT_THROW(file.commit(), Error);
  file.write("b", wide);
  EXPECT_FALSE(std::filesystem::exists(path_));
  file.commit();
  EXPECT_EQ(read_file(path_), expected);
}

TEST_F(SafetensorsTest, ForeignTypesAreListedButNotRead) {
  write_raw(R"({"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", 4);
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.entry("mask").format, "BOOL");
  EXPECT_EQ(file.bytes("mask").size(), 4u);
  EXPECT_THROW(file.read(stream_, "mask"), Error);
}

// Someone else writes to the file while it is open: an Error, not a signal.
TEST_F(SafetensorsTest, AFileThatShrinksInUseIsAnError) {
  const Tensor tensor = Tensor::zeros(stream_, DType::fp32, {100000});
  write_safetensors(path_, stream_, {{"x", tensor}});
  const SafetensorsFile file(path_);
  std::filesystem::resize_file(path_, 4096);
  EXPECT_THROW(file.read(stream_, "x"), Error);
  EXPECT_THROW(file.bytes("x"), Error);
}

TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const Tensor tensor = Tensor::from_host<float>(stream_, {1, 2, 3}, {3});
  write_safetensors(path_, stream_, {{"x", tensor}}, {{"key", "value"}});
  const std::string whole = read_file(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(whole.substr(0, size));
    EXPECT_NE(open_error(), "") << size;
  }
  write_bytes(whole + "x");
  EXPECT_TRUE(contains(open_error(), "1 bytes at the end of the file belong to no tensor"));
}

// Printing a value in a message takes stack for each level of it.
TEST_F(SafetensorsTest, DeepNestingIsAnError) {
  const std::string deep(1'000'000, '[');
  write_raw(R"({"__metadata__":{"a":)" + deep, 0);
  EXPECT_TRUE(contains(open_error(), "nested more than")) << open_error().substr(0, 200);
}

TEST_F(SafetensorsTest, BadHeaders) {
  const struct {
    const char *header, *message;
    std::size_t data_bytes = 8;
  } kCases[] = {
      {"[]", "no JSON object"},
      {"{", "not valid JSON"},
      {"{\"a\":\"\xff\"}", "not valid JSON"},
      {R"({"a":1})", "is no object"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "lacks its dtype"},
      {R"({"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}})", "unknown dtype Q4"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "lacks the list shape"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "bad element -2"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "bad element 2.0"},
      {R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", "bad element"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,2],"data_offsets":[0,8]}})", "7 dimensions"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
       "impossible shape"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0]}})",
       "impossible shape", 0},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "lacks the list data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "bad data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", "bad data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "cut off", 7},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "needs 12"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "bytes 0 to 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "overlaps another", 4},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "appears twice"},
      {R"({"__metadata__":{"a":1}})", "must hold strings", 0},
      {R"({"__metadata__":[]})", "must be an object", 0},
  };
  for (const auto& bad : kCases) {
    write_raw(bad.header, bad.data_bytes);
    const std::string error = open_error();
    EXPECT_TRUE(contains(error, bad.message)) << bad.header << "\n gave: " << error;
    EXPECT_TRUE(contains(error, path_.string())) << error;
  }
  write_bytes(std::string(16, '\x7f'));
  EXPECT_TRUE(contains(open_error(), "its header would have"));
}

}  // namespace
}  // namespace bloomery
