// Corpora made of other corpora.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "corpus/indexed_corpus.h"

namespace bloomery {

// The prefixes that the words of a command line mean: each word is a prefix, the path of its .bin
// or .idx, or a folder, which means all pairs in it in the order of their names. A folder with half
// a pair is an Error.
std::vector<std::filesystem::path> corpus_prefixes(const std::vector<std::string>& words);

// The type that holds the tokens of all: their own when they agree, else i32.
TokenType common_type(const std::vector<IndexedCorpus>& corpora);

// Appends a corpus of the kind that uncounted_eod() recognises with its end-of-document tokens
// counted, each as the last token of its document.
void append_counting_eod(IndexedWriter& writer, TokenType type, const IndexedCorpus& corpus);

// Documents [border[i], border[i + 1]) are part i of `parts`, with about as many tokens each.
std::vector<std::int64_t> equal_parts(const IndexedCorpus& corpus, std::int64_t parts);

}  // namespace bloomery
