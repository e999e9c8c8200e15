#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bloomery.h"
#include "data/indexed_corpus.h"

namespace bloomery {
namespace {

// NullTokenizer needs no files: the texts are numbers.
class PreprocessCommand : public ::testing::Test {
 protected:
  PreprocessCommand() {
    std::string name = std::filesystem::temp_directory_path() / "bloomery-command-XXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ / "in.jsonl") << "{\"text\":\"1 2 3\"}\nbad\n{\"text\":\"4\"}\n";
  }
  ~PreprocessCommand() override { std::filesystem::remove_all(folder_); }

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

  std::filesystem::path folder_;
  std::string errors_;
};

TEST_F(PreprocessCommand, EveryNameOfIt) {
  for (const char* name : {"preprocess", "preprocess_data", "tools/preprocess_data.py"}) {
    std::filesystem::remove(folder_ / "out_text_document.idx");
    EXPECT_EQ(run(name), kFinished) << errors_;
    const IndexedCorpus corpus(folder_ / "out_text_document");
    EXPECT_EQ(corpus.num_documents(), 2);
    std::vector<TokenId> ids(4);
    corpus.read(0, 0, ids);
    EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 3, 100}));
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

// A run that waits for a pipe is killed, twice as timeout(1) does it: nothing of it remains.
TEST_F(PreprocessCommand, KilledRunLeavesNothing) {
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
  constexpr char kLine[] = "{\"text\":\"1\"}\n";
  ASSERT_EQ(write(ends[1], kLine, sizeof kLine - 1), static_cast<ssize_t>(sizeof kLine - 1));
  int unread = 1;
  for (int tries = 0; unread > 0 && tries < 500; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(ioctl(ends[0], FIONREAD, &unread), 0);
  }
  EXPECT_EQ(unread, 0) << "the run did not begin";
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
