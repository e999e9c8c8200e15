#include <algorithm>
#include <set>

#include "base/error.h"
#include "config/option_table.h"
#include "corpus/preprocess/preprocess.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

void describe_documents(OptionTable& t, PreprocessOptions& o) {
  t.section("documents");
  t.add("split-sentences", o.split_sentences, "One sequence for each sentence.");
  t.add("keep-newlines", o.keep_newlines,
        "With --split-sentences: white space between sentences stays, with the one before it.");
  t.add("append-eod", o.append_eod, "End each document with the end-of-document token.");
  t.add("add-special-tokens", o.add_special_tokens,
        "The tokenizer adds its own tokens around each text; HFTokenizer and Llama2Tokenizer do so "
        "without this flag, as in Megatron.");
  t.add("no-parse-special", o.no_parse_special,
        "Special tokens in the text are plain text; always so with GPT2BPETokenizer.");
}

void describe_output(OptionTable& t, PreprocessOptions& o) {
  t.section("output");
  t.add("output-prefix", o.output_prefix,
        "Writes PREFIX_KEY_document.bin and .idx, or _sentence with --split-sentences.")
      .required();
  t.add("overwrite", o.overwrite, "Replace a corpus that is there already.");
  t.add("dataset-impl", o.dataset_impl, "Format of the corpus; training wants mmap.",
        {{"mmap", CorpusFormat::mmap},
         {"cached", CorpusFormat::cached},
         {"lazy", CorpusFormat::lazy}});
  t.section("running");
  describe_workers(t, o);
  t.add("partitions", o.partitions,
        "So many runs of the input files are read and decompressed at the same time. The output is "
        "the same with any number; what comes from all but the first is on disk twice for a while.",
        between(1, 1024));
  t.ignore("lang", "the sentence rules are the same for all languages");
  t.ignore("seq-length", "documents are stored whole");
  t.ignore("trust-remote-code", "no code of others is run");
}

}  // namespace

void describe(OptionTable& table, PreprocessOptions& options) {
  describe_lines(table, options,
                 "Keys whose strings become documents, each in a corpus of its own.");
  describe_documents(table, options);
  describe_output(table, options);
}

std::vector<std::string> problems(const PreprocessOptions& options) {
  std::vector<std::string> found;
  if (options.json_keys.empty()) {
    found.push_back("--json-keys needs at least one key");
  }
  if (std::set(options.json_keys.begin(), options.json_keys.end()).size() !=
      options.json_keys.size()) {
    found.push_back("--json-keys names a key twice");
  }
  if (std::ranges::any_of(options.json_keys,
                          [](const std::string& key) { return key.find('/') != key.npos; })) {
    found.push_back("--json-keys: a key with '/' cannot be part of a file name");
  }
  return found;
}

std::string corpus_prefix(const PreprocessOptions& options, const std::string& key) {
  return concat(options.output_prefix, "_", key,
                options.split_sentences ? "_sentence" : "_document");
}

EncodeOptions encode_options(const PreprocessOptions& options, const std::string& tokenizer_type) {
  const bool by_type = !tokenizer_type.empty();  // as Megatron does; of a path, what is asked for
  const EncodeOptions usual = text_encoding({.type = tokenizer_type});
  return {.add_special_tokens = options.add_special_tokens || (by_type && usual.add_special_tokens),
          .parse_special = !options.no_parse_special && usual.parse_special};
}

}  // namespace bloomery
