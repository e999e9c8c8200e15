// Text to indexed corpora: Megatron's preprocess_data, in input order whatever the number of
// workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corpus/indexed_corpus.h"
#include "text/lines/line_options.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct PreprocessOptions : LineOptions {
  bool split_sentences = false, keep_newlines = false, append_eod = false;
  bool add_special_tokens = false, no_parse_special = false;

  std::string tokenizer_name;  // for the note beside the corpora; empty: they get none
  std::string output_prefix;
  bool overwrite = false;  // the command asks before it replaces a corpus
  CorpusFormat dataset_impl = CorpusFormat::mmap;
  int partitions = 1;
};

void describe(OptionTable& table, PreprocessOptions& options);
// Rules across options, for OptionTable::finish.
std::vector<std::string> problems(const PreprocessOptions& options);

struct PreprocessOutput {
  std::string prefix;  // of .bin and .idx
  std::int64_t documents = 0, tokens = 0;
};

struct PreprocessSummary {
  std::vector<PreprocessOutput> outputs;  // of each key
  TokenType type = TokenType::u16;
  std::int64_t lines = 0;        // good ones
  std::int64_t empty_texts = 0;  // skipped: they give no token
  std::int64_t bad_lines = 0;
  std::uint64_t bytes = 0;   // of text read
  bool interrupted = false;  // nothing was written
};

// PREFIX_KEY_document, or _sentence for a corpus of sentences.
std::string corpus_prefix(const PreprocessOptions& options, const std::string& key);

// How a tokenizer of Megatron's `tokenizer_type` (empty: none given) is applied to a text.
EncodeOptions encode_options(const PreprocessOptions& options, const std::string& tokenizer_type);

// Writes the corpora, or throws and leaves nothing under their names.
PreprocessSummary preprocess(const PreprocessOptions& options, const EncodeOptions& encode,
                             const Tokenizer& tokenizer, const LineCaller& caller);

}  // namespace bloomery
