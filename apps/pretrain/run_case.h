// What tests of whole runs of `bloomery pretrain` share: a corpus of little stories, a folder for
// the runs, and a command.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"

namespace bloomery {

Arguments words(const std::string& text);

// A folder with a corpus and a tokenizer, made once.
const std::filesystem::path& corpus_folder();

class RunCase {
 public:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string saved_in(const std::string& name) const {
    return " --save " + at(name) + " --load " + at(name) + " ";
  }

  // The command that trains with what `more` says and small values for the rest.
  static Arguments command(const std::string& more);
  Outcome train(const std::string& more) const { return run_command(command(more)); }
  Outcome train_loudly(const std::string& more) const;  // with the warnings among the errors

  CheckpointReader newest(const std::string& name) const;
  void expect_same_checkpoints(const std::string& a, const std::string& b) const;

 private:
  TemporaryFolder folder_;
};

// What the pattern's first group matches, each time.
std::vector<std::string> all_matches(const std::string& text, const std::string& pattern);
std::vector<std::string> losses(const std::string& out);
std::vector<std::string> validations(const std::string& out);

// Stopping and going on in a new process gives the losses and the bits of the uninterrupted run.
void expect_exact_resume(const std::function<Outcome(const std::string&)>& train,
                         const std::string& whole, const std::string& parts);

}  // namespace bloomery
