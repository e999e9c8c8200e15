#include "apps/shims/shims.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "apps/common/command_case.h"
#include "apps/shims/shim_file.h"
#include "apps/shims/translate.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

TEST(Shims, AreWrittenOnceAndRecognised) {
  const TemporaryFolder place;
  const std::filesystem::path folder = place.path() / "it's new";
  const std::string line = expect_command({"shims", "--dir", folder.string()});
  EXPECT_TRUE(line.starts_with("export PATH='") && line.ends_with("it'\\''s new':\"$PATH\"\n"))
      << line;
  for (const std::string& name : shim_names()) {
    EXPECT_TRUE(is_shim_file(folder / name)) << name;
    const std::string text = read_file(folder / name);
    EXPECT_NE(text.find("' shim " + name + " \"$@\"\n"), text.npos) << text;
  }
  const auto written = std::filesystem::last_write_time(folder / "python");
  expect_command({"shims", "--dir", folder.string()});
  EXPECT_EQ(std::filesystem::last_write_time(folder / "python"), written);
}

TEST(Shims, LeaveOtherProgramsAlone) {
  const TemporaryFolder folder;
  const std::string text = "#!/bin/sh\necho mine\n";
  folder.file("torchrun", text);
  const Outcome outcome = run_command({"shims", "--dir", folder.path().string()});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("is there already and is no shim")) << outcome.errors;
  EXPECT_EQ(read_file(folder.path() / "torchrun"), text);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "python"));
}

TEST(Shims, FoldersThatCannotBeAreCodeTwo) {
  const TemporaryFolder folder;
  const std::string below = folder.file("file", "").string() + "/shims";
  const Outcome outcome = run_command({"shims", "--dir", below});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("cannot be made")) << outcome.errors;
}

}  // namespace
}  // namespace bloomery
