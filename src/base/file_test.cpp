#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

// An empty folder that disappears with the test.
class FileTest : public ::testing::Test {
 protected:
  FileTest() { std::filesystem::create_directory(folder_); }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::ptrdiff_t num_files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / concat("bloomery_file_test_", getpid());
};

TEST_F(FileTest, WrittenThenRead) {
  const std::string text = std::string("a\0b", 3) + std::string(100000, 'x');
  AtomicFile file(folder_ / "data");
  file.write(text.substr(0, 5));
  file.write(text.substr(5));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "data"));
  file.commit();
  EXPECT_EQ(read_file(folder_ / "data"), text);
  EXPECT_EQ(num_files(), 1);
  EXPECT_THROW(file.write("more"), Error);
  EXPECT_THROW(file.commit(), Error);
}

TEST_F(FileTest, WritesAtAPlaceAndGoesOnBehindTheRest) {
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  AtomicFile file(folder_ / "data");
  file.write("....56");
  file.write_at(1, bytes("234"));
  file.write("78");
  file.write_at(9, bytes("x"));
  file.commit();
  EXPECT_EQ(read_file(folder_ / "data"), std::string(".2345678\0x", 10));
  EXPECT_THROW(file.write_at(0, bytes("more")), Error);
}

TEST_F(FileTest, CommitReplacesAndAbandonLeavesNothing) {
  for (const char* text : {"old", "new"}) {
    AtomicFile file(folder_ / "data");
    file.write(text);
    file.commit();
  }
  {
    AtomicFile abandoned(folder_ / "data");
    abandoned.write("lost");
    abandoned.sync();
  }
  EXPECT_EQ(read_file(folder_ / "data"), "new");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(FileTest, EmptyFile) {
  AtomicFile(folder_ / "empty").commit();
  EXPECT_EQ(read_file(folder_ / "empty"), "");
}

TEST_F(FileTest, ErrorsNameTheFile) {
  try {
    read_file(folder_ / "absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("absent: No such file"), std::string::npos);
  }
  EXPECT_THROW(read_file(folder_), Error);
  EXPECT_THROW(AtomicFile(folder_ / "no" / "such" / "folder"), Error);
}

}  // namespace
}  // namespace bloomery
