// The files of a tokenizer, and the copies of them that every checkpoint carries, so that a model
// is read with the tokenizer that it was trained with, wherever the run was moved and whatever
// became of the first ones.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "checkpoint/snapshot.h"
#include "tokenizer/load.h"

namespace bloomery {

struct TokenizerFile {
  std::string name;  // that transformers looks for; its own where it looks for none
  std::filesystem::path source;
};
// Of the tokenizer that the options name, and the chat template beside it; NullTokenizer has none.
std::vector<TokenizerFile> tokenizer_files(const TokenizerOptions& options);

// For Snapshot::files. `chat_template`, if not empty, takes the place of the one that is there. An
// Error names a file that cannot be read.
std::shared_ptr<const std::vector<SnapshotFile>> read_tokenizer_files(
    const TokenizerOptions& options, const std::string& chat_template = "");

// Notes in the state which of the options name files that the checkpoint will carry.
void set_carried_tokenizer(RunState& state, const TokenizerOptions& options);

// The options with the copies' places; none when the checkpoint carries no tokenizer. An Error when
// a copy is not what the manifest says.
std::optional<TokenizerOptions> carried_tokenizer(const CheckpointReader& checkpoint);

// An Error unless the files are those that the checkpoint carries, if it does. The chat template
// may be another.
void require_same_tokenizer(const CheckpointReader& checkpoint,
                            const std::vector<SnapshotFile>& files);

}  // namespace bloomery
