// What a user may have meant by a name that is no corpus.
#pragma once

#include <filesystem>
#include <string>

namespace bloomery {

// Why there is no corpus PREFIX.bin and PREFIX.idx, with the name that is probably meant or the
// command that makes one; empty where both files are there.
std::string why_no_corpus(const std::filesystem::path& prefix);

// "; did you mean run/my_text_document?", or nothing when no corpus is like it.
std::string corpus_suggestion(const std::filesystem::path& prefix);

}  // namespace bloomery
