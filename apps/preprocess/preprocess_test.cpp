#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/bloomery.h"
#include "base/temporary_folder.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

// NullTokenizer needs no files: the texts are numbers.
class PreprocessCommand : public ::testing::Test {
 protected:
  PreprocessCommand() {
    std::ofstream(folder_ / "in.jsonl") << "{\"text\":\"1 2 3\"}\nbad\n{\"text\":\"4\"}\n";
  }

  int run(const std::string& command, Arguments further = {}) {
    Arguments arguments = {command,           "--input",       folder_ / "in.jsonl",
                           "--output-prefix", folder_ / "out", "--tokenizer-type",
                           "NullTokenizer",   "--vocab-size",  "100",
                           "--append-eod"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    std::ostringstream out, errors;
    const int code = run_bloomery(arguments, out, errors);
    errors_ = errors.str();
    return code;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  std::string errors_;
};

TEST_F(PreprocessCommand, EveryNameOfIt) {
  for (const char* name : {"preprocess", "preprocess_data", "tools/preprocess_data.py"}) {
    EXPECT_EQ(run(name, {"--overwrite"}), kFinished) << errors_;
    const IndexedCorpus corpus(folder_ / "out_text_document");
    EXPECT_EQ(corpus.num_documents(), 2);
    std::vector<TokenId> ids(4);
    corpus.read(0, 0, ids);
    EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 3, 100}));
  }
}

TEST_F(PreprocessCommand, WhatWasKilledBetweenTheTwoNamesEnds) {
  EXPECT_EQ(run("preprocess"), kFinished) << errors_;
  std::filesystem::remove(folder_ / "out_text_document.idx");
  EXPECT_EQ(run("preprocess"), kFinished) << errors_;
  EXPECT_EQ(IndexedCorpus(folder_ / "out_text_document").num_documents(), 2);
}

TEST_F(PreprocessCommand, AnExistingCorpusStaysUnlessAskedFor) {
  EXPECT_EQ(run("preprocess"), kFinished) << errors_;
  std::ofstream(folder_ / "in.jsonl") << "{\"text\":\"7\"}\n";
  EXPECT_EQ(run("preprocess"), kBadInput);
  EXPECT_NE(errors_.find("--overwrite"), std::string::npos) << errors_;
  EXPECT_EQ(IndexedCorpus(folder_ / "out_text_document").num_documents(), 2);
  EXPECT_EQ(run("preprocess", {"--overwrite"}), kFinished) << errors_;
  EXPECT_EQ(IndexedCorpus(folder_ / "out_text_document").num_documents(), 1);
}

TEST_F(PreprocessCommand, AnInputWithoutDocumentsIsCodeTwo) {
  for (const char* input :
       {"", "\n\n", "bad\n{}\n", "{\"text\":\"\"}\n", "{\"title\":\"1 2\"}\n"}) {
    std::ofstream(folder_ / "in.jsonl") << input;
    EXPECT_EQ(run("preprocess"), kBadInput) << input;
    EXPECT_NE(errors_.find("no document in the input"), std::string::npos) << errors_;
    EXPECT_EQ(files(), 1) << input;
  }
}

TEST_F(PreprocessCommand, StrictIsCodeTwo) {
  EXPECT_EQ(run("preprocess", {"--strict"}), kBadInput);
  EXPECT_NE(errors_.find("in.jsonl, line at byte 17: invalid JSON"), std::string::npos) << errors_;
  EXPECT_EQ(files(), 1);
}

TEST_F(PreprocessCommand, MissingFolderIsCodeTwo) {
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(run("preprocess"), kBadInput);
}

// Whether the process has a handler for the signal, as the kernel tells it.
bool catches(pid_t process, int number) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word == "SigCgt:") {
      status >> word;
      return (std::stoull(word, nullptr, 16) >> (number - 1) & 1) != 0;
    }
  }
  return false;
}

// A run that waits for a pipe is killed, twice as timeout(1) does it: nothing of it remains.
TEST_F(PreprocessCommand, KilledRunLeavesNothing) {
  if (catches(getpid(), SIGTERM)) {
    GTEST_SKIP() << "something catches signals for this process (qemu does): when the run is ready "
                    "for them cannot be seen";
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    freopen("/dev/null", "w", stderr);
    std::filesystem::current_path(folder_);
    std::ostringstream out, errors;
    _exit(run_bloomery({"preprocess", "--input", "-", "--output-prefix", "killed",
                        "--tokenizer-type", "NullTokenizer", "--vocab-size", "100"},
                       out, errors));
  }
  for (int tries = 0; !catches(child, SIGTERM) && tries < 2000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGTERM);
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_EQ(files(), 1);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace bloomery
