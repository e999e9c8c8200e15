// The texts that a retriever is to find: read once to count them, once for their words, and once
// for their vectors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retrieve/text_vectors.h"

namespace bloomery {

struct TextPassage {
  std::int64_t id = 0;
  std::string title, text;
};

// Calls the body for each passage, in the same order each time.
using ForEachPassage = std::function<void(const std::function<void(const TextPassage&)>&)>;

// A file of rows id, text, title, with a line of names first, as DPR's psgs_w100.tsv. An Error
// names the row that is none.
ForEachPassage passages_of_tsv(const std::string& path);

// Blocks of a corpus of sentences (block_mapping.h), each with the title of its document and the
// number of the block, in the corpus's order; texts are the tokens', decoded.
struct BlockCorpus {
  std::string data, titles;  // prefixes
  std::int64_t seq_length = 256;
  bool one_sentence = false;  // documents of one sentence are used, too
};
ForEachPassage passages_of_blocks(const BlockCorpus& corpus, const Tokenizer& tokenizer);

}  // namespace bloomery
