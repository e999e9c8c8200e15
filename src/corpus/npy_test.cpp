#include "corpus/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace bloomery {
namespace {

class NpyTest : public ::testing::Test {
 protected:
  ~NpyTest() override { std::filesystem::remove(path_); }
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / concat("bloomery_npy_test_", getpid(), ".npy");
};

std::string unhex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// The headers of tests/golden/npy_headers.txt are those of numpy.save
// (tools/golden/npy_headers.py).
TEST_F(NpyTest, HeadersAreNumpys) {
  const char* root = std::getenv("BLOOMERY_ROOT");
  ASSERT_NE(root, nullptr);
  std::istringstream lines(read_file(std::filesystem::path(root) / "tests/golden/npy_headers.txt"));
  int count = 0;
  for (std::string type, shape, header; lines >> type >> shape >> header; ++count) {
    std::vector<std::int64_t> sizes;
    std::ranges::replace(shape, 'x', ' ');
    std::istringstream numbers(shape);
    for (std::int64_t number; numbers >> number;) {
      sizes.push_back(number);
    }
    for (int i = 0; i < 7; ++i) {
      const auto kind = static_cast<NpyType>(i);
      if (name(kind) == type) {
        const NpyHeader expected{.type = kind, .shape = sizes, .data_offset = 0};
        const std::vector<std::byte> zeros(static_cast<std::size_t>(expected.num_elements()) *
                                           size_of(kind));
        NpyWriter writer(path_, kind, sizes);
        writer.write(zeros);
        writer.commit();
        EXPECT_EQ(read_file(path_), unhex(header) + std::string(zeros.size(), '\0'));
        if (kind == NpyType::f32) {  // only written
          EXPECT_THROW(NpyFile{path_}, Error);
          continue;
        }
        EXPECT_EQ(NpyFile(path_).type(), kind);
        EXPECT_EQ(NpyFile(path_).shape(), sizes);
      }
    }
  }
  EXPECT_EQ(count, 12);
}

template <class T>
void expect_round_trip(const std::filesystem::path& path) {
  const std::vector<T> values = {0, 1, static_cast<T>(-1), 7, 100, 3};
  write_npy<T>(path, values, {3, 2});
  const NpyFile file(path);
  EXPECT_EQ(file.shape(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_TRUE(std::ranges::equal(file.values<T>(), values));
}

TEST_F(NpyTest, EveryTypeGivesBackWhatWasWritten) {
  expect_round_trip<std::uint8_t>(path_);
  expect_round_trip<std::uint16_t>(path_);
  expect_round_trip<std::int32_t>(path_);
  expect_round_trip<std::uint32_t>(path_);
  expect_round_trip<std::int64_t>(path_);
  expect_round_trip<std::uint64_t>(path_);
  EXPECT_THROW(NpyFile(path_).values<std::int64_t>(), Error);
}

TEST_F(NpyTest, AFileThatIsCutShortWhileOpenIsAnError) {
  const std::vector<std::int64_t> values(100000, 5);
  write_npy<std::int64_t>(path_, values, {100000});
  const NpyFile file(path_);
  std::filesystem::resize_file(path_, 4096);
  EXPECT_EQ(file.value<std::int64_t>(3), 5);
  EXPECT_THROW(file.value<std::int64_t>(90000), Error);
  EXPECT_THROW(file.value<std::int64_t>(100000), Error);
  EXPECT_THROW(file.value<std::int64_t>(-1), Error);
}

TEST_F(NpyTest, NothingRemainsWithoutCommit) {
  { NpyWriter writer(path_, NpyType::u8, {5}); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

std::string file_with(const std::string& dict, const std::string& data, char version = 1) {
  std::string header = dict;
  header.resize((header.size() / 64 + 1) * 64 + (version == 1 ? 54 : 52) - 1, ' ');
  header += '\n';
  std::string length(version == 1 ? 2 : 4, '\0');
  length[0] = static_cast<char>(header.size() & 0xff);
  length[1] = static_cast<char>(header.size() >> 8);
  return std::string("\x93NUMPY") + version + '\0' + length + header + data;
}

NpyHeader parse(const std::string& file) {
  return parse_npy(std::as_bytes(std::span(file)), file.size(), "array.npy");
}

void expect_refused(const std::string& file, const std::string& part) {
  try {
    parse(file);
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(NpyHeader, OtherSpellings) {
  const std::string data(8, '\1');
  for (const char version : {'\1', '\2', '\3'}) {
    const NpyHeader header = parse(
        file_with("{\"shape\":(2 ,),'descr':\"<i4\" , 'fortran_order':False}", data, version));
    EXPECT_EQ(header.type, NpyType::i32);
    EXPECT_EQ(header.shape, std::vector<std::int64_t>{2});
  }
  const NpyHeader empty =
      parse(file_with("{'descr': '<u1', 'fortran_order': False, 'shape': (0, 99), }", ""));
  EXPECT_EQ(empty.num_elements(), 0);
}

TEST(NpyHeader, RefusesWhatItDoesNotKnow) {
  const std::string data(8, '\1');
  const auto dict = [](const std::string& type, const std::string& order,
                       const std::string& shape) {
    return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  const std::string good = file_with(dict("<i4", "False", "(2,)"), data);
  EXPECT_NO_THROW(parse(good));
  expect_refused("", "is not a .npy file");
  expect_refused("PK" + good, "is not a .npy file");
  expect_refused(good.substr(0, 9), "is cut short");
  expect_refused(good.substr(0, 60), "its header has");
  expect_refused(good.substr(0, good.size() - 1), "is cut short");
  expect_refused(good + "x", "9 bytes of data");
  expect_refused(file_with(dict("<i4", "False", "(2,)"), data, 4), "format version 4.0");
  expect_refused(file_with(dict("<f4", "False", "(2,)"), data), "'<f4' are not supported");
  expect_refused(file_with(dict(">i4", "False", "(2,)"), data), "'>i4' are not supported");
  expect_refused(file_with(dict("<i4", "True", "(2,)"), data), "Fortran order");
  expect_refused(file_with(dict("<i4", "None", "(2,)"), data), "True or False");
  expect_refused(file_with(dict("<i4", "False", "()"), data), "has 0 dimensions");
  expect_refused(file_with(dict("<i4", "False", "(2,1,1)"), data), "has 3 dimensions");
  expect_refused(file_with(dict("<i4", "False", "(-2,)"), data), "numbers of a shape");
  expect_refused(file_with(dict("<i4", "False", "(99999999999999999999,)"), data), "numbers of");
  expect_refused(file_with(dict("<i4", "False", "(4294967296,4294967296)"), data), "is cut short");
  expect_refused(file_with(dict("<i4", "False", "(2,)") + "x", data), "nothing after");
  expect_refused(file_with("{'descr': '<i4', 'shape': (2,)}", data), "it needs descr");
  expect_refused(file_with("{'descr': '<i4', 'descr': '<i4'}", data), "unknown or there twice");
  expect_refused(file_with("{'descr", data), "a text without end");
}

}  // namespace
}  // namespace bloomery
