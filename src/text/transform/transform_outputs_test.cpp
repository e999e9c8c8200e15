#include "text/transform/transform_outputs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/filter/filter.h"
#include "text/transform/resumable_files.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TransformOutputs, OneProcessAtATimeWritesToAFolder) {
  const TemporaryFolder folder;
  const fs::path report = folder.path() / "report.json";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    const TransformOutputs outputs({}, report, {"clean"});
    static_cast<void>(!write(ready[1], "x", 1));
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto take = [&] { const TransformOutputs outputs({}, report, {"clean"}); };
  const std::string said = error_of(take);
  EXPECT_NE(said.find("process " + std::to_string(other)), said.npos) << said;
  EXPECT_NE(said.find("is writing to " + folder.path().string()), said.npos) << said;
  kill(other, SIGKILL);  // what a dead process held is free
  waitpid(other, nullptr, 0);
  EXPECT_EQ(error_of(take), "");
  close(ready[0]);
  close(ready[1]);
}

class ClearingUp : public testing::Test {
 protected:
  ClearingUp() {
    for (const char* name : {"a.jsonl", "b.jsonl", "c.jsonl"}) {
      options_.input.push_back(folder_.file(name, "{\"text\": \"long enough\"}\n{\"text\": 1}\n"));
    }
    options_.output = out_;
    options_.min_characters = 5;
  }
  FilterSummary run() {
    return filter(options_, "filter", {.messages = messages_, .go_on = [] { return true; }});
  }
  // As a kill leaves it when all outputs have their names, and nothing was cleared up yet.
  void stop_before_the_report() {
    fs::create_directories(out_ / "report.json" / "in the way");
    EXPECT_THROW(run(), std::exception);
    fs::remove_all(out_ / "report.json");
  }

  TemporaryFolder folder_;
  const fs::path out_ = folder_.path() / "out";
  FilterOptions options_;
  std::ostringstream messages_;
};

TEST_F(ClearingUp, TheSameCommandEndsWhatWasKilledInIt) {
  stop_before_the_report();
  ASSERT_TRUE(fs::exists(out_ / "b.jsonl.progress"));
  fs::copy(out_, folder_.path() / "killed");
  const FilterSummary whole = run();
  EXPECT_EQ(visible_names(out_),
            (std::vector<std::string>{"a.jsonl", "b.jsonl", "c.jsonl", "report.json"}));
  EXPECT_EQ(whole.report.kept, 3);
  // The report is there, and some notes still are.
  fs::copy(folder_.path() / "killed" / "b.jsonl.progress", out_ / "b.jsonl.progress");
  const FilterSummary again = run();
  EXPECT_TRUE(again.was_finished);
  EXPECT_EQ(again.report.json(), whole.report.json());
  EXPECT_FALSE(fs::exists(out_ / "b.jsonl.progress"));
  EXPECT_TRUE(run().was_finished);
}

TEST_F(ClearingUp, OtherCommandsAndOtherInputsAreNotFinished) {
  run();
  const auto refused = [&] { return error_of([&] { run(); }).find("exists already"); };
  options_.min_characters = 6;
  EXPECT_NE(refused(), std::string::npos);
  options_.min_characters = 5;
  folder_.file("a.jsonl", "{\"text\": \"another text\"}\n");
  EXPECT_NE(refused(), std::string::npos);
  options_.overwrite = true;
  EXPECT_FALSE(run().was_finished);
  options_.overwrite = false;
  fs::resize_file(out_ / "a.jsonl", 3);  // by someone else
  EXPECT_NE(refused(), std::string::npos);
}

TEST_F(ClearingUp, BadLinesAreInTheReport) {
  run();
  const TransformReport report = TransformReport::parse(read_file(out_ / "report.json"));
  EXPECT_EQ(report.bad_lines.count, 3);
  ASSERT_EQ(report.bad_lines.samples.size(), 3);
  EXPECT_TRUE(report.bad_lines.samples[0].file.ends_with("a.jsonl"));
  EXPECT_EQ(report.bad_lines.samples[0].offset, 24);
}

TEST_F(ClearingUp, InputsWithoutADocumentAreAMistake) {
  for (const char* name : {"a.jsonl", "b.jsonl", "c.jsonl"}) folder_.file(name, "");
  EXPECT_NE(error_of([&] { run(); }).find("no line, so no document"), std::string::npos);
  folder_.file("b.jsonl", "{\"content\": \"a\"}\n");
  const std::string said = error_of([&] { run(); });
  EXPECT_NE(said.find("no document in 1 lines"), said.npos) << said;
  EXPECT_FALSE(fs::exists(out_));                            // with its lock, which is hidden
  folder_.file("c.jsonl", "{\"text\": \"long enough\"}\n");  // one file with some is no mistake
  EXPECT_EQ(run().report.kept, 1);
  EXPECT_TRUE(fs::exists(out_ / "a.jsonl"));
}

// What was refused leaves nothing: neither a new folder, nor one more in a folder of the user.
TEST_F(ClearingUp, RefusedInputsLeaveNoFolder) {
  const fs::path own = folder_.path() / "own";
  fs::create_directory(own);
  options_.input = {(folder_.path() / "missing.jsonl").string()};
  for (const fs::path& output :
       {folder_.path() / "new", folder_.path() / "new/and/deep", own / "x"}) {
    options_.output = output;
    EXPECT_NE(error_of([&] { run(); }), "");
    EXPECT_FALSE(fs::exists(output)) << output;
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "new"));
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::is_empty(own));
}

TEST(ResumableFiles, AFileThatSomethingElseChangedGetsNoName) {
  const TemporaryFolder folder;
  const fs::path name = folder.path() / "a";
  ResumableFiles files({name}, "s", false);
  files.append(0, "text");
  files.save({});
  std::ofstream(folder.path() / "a.partial", std::ios::app) << "more";
  FileProgress done;
  done.done = true;
  const std::string said = error_of([&] { files.save(done); });
  EXPECT_NE(said.find("has 8 bytes, but 4 were written"), said.npos) << said;
  EXPECT_FALSE(fs::exists(name));
}

TEST(ResumableFiles, DamagedNotesAreOneMessage) {
  const TemporaryFolder folder;
  for (const char* note : {"", "{}", "[1]", "{\"settings\": \"s\", \"offset\": \"x\"}",
                           "{\"settings\": \"s\", \"offset\": 0, \"line\": 0, \"jsonl\": false, "
                           "\"done\": false, \"bytes\": [0], \"report\": \"{}\"}"}) {
    folder.file("a.progress", note);
    const std::string said =
        error_of([&] { const ResumableFiles files({folder.path() / "a"}, "s", false); });
    EXPECT_NE(said.find("is damaged"), said.npos) << note << ": " << said;
    EXPECT_NE(said.find("--overwrite starts over"), said.npos) << said;
  }
}

TEST(ResumableFiles, GoesOnWithAnInputWhoseNameIsNoUtf8) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& settings) {
    return std::make_unique<ResumableFiles>(std::vector{folder.path() / "a\xFF"}, settings, false);
  };
  FileProgress half;
  half.offset = 7;
  auto files = open("input: \xFF");
  files->append(0, "text");
  files->save(half);
  files.reset();
  EXPECT_EQ(open("input: \xFF")->progress().offset, 7);
  EXPECT_NE(error_of([&] { open("input: \xFE"); }).find("other options"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
