// Writes a trained vocabulary in the layouts that other programs read.
#pragma once

#include <filesystem>
#include <string>

#include "tokenizer/train/bpe_trainer.h"

namespace bloomery {

// Hugging Face's file: added tokens, the pattern as pre-tokenizer, vocabulary, merges.
std::string tokenizer_json(const TrainedBpe& trained, SplitPattern pattern);
// GPT-2's two files.
std::string vocab_json(const TrainedBpe& trained);
std::string merges_txt(const TrainedBpe& trained);

// An Error unless the folder can be written to, or is not there and can be made. Makes nothing.
void check_folder(const std::filesystem::path& folder);

// Writes tokenizer.json, vocab.json and merges.txt into the folder. One that is not there appears
// with all three. Else no name ever holds a part of a file, and none changes before all three are
// written out.
void write_tokenizer(const std::filesystem::path& folder, const TrainedBpe& trained,
                     SplitPattern pattern);

}  // namespace bloomery
