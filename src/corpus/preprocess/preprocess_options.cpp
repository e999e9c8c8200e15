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
  t.add("split-sentences", o.split_sentences, "Write one sequence per sentence.");
  t.add("keep-newlines", o.keep_newlines,
        "With --split-sentences: keep the white space after each sentence.");
  t.add("append-eod", o.append_eod, "Append the end-of-document token to each document.");
  t.add("add-special-tokens", o.add_special_tokens,
        "Let the tokenizer add its own special tokens to each text; HFTokenizer and "
        "Llama2Tokenizer always do, as in Megatron.");
  t.add("no-parse-special", o.no_parse_special,
        "Encode special tokens in the text as plain text; GPT2BPETokenizer always does.");
}

void describe_output(OptionTable& t, PreprocessOptions& o) {
  t.section("output");
  t.add("output-prefix", o.output_prefix,
        "Prefix of the output: PREFIX_KEY_document.bin and .idx, or _sentence with "
        "--split-sentences.")
      .required();
  t.add("overwrite", o.overwrite, "Replace an existing corpus.");
  t.add("dataset-impl", o.dataset_impl, "Format of the corpus; training reads mmap.",
        {{"mmap", CorpusFormat::mmap},
         {"cached", CorpusFormat::cached},
         {"lazy", CorpusFormat::lazy}});
  t.section("running");
  describe_workers(t, o);
  t.add("partitions", o.partitions,
        "Read this many groups of input files in parallel. The output is the same with any number, "
        "but needs up to twice the disk space while it is written.",
        between(1, 1024));
  t.ignore("lang", "the sentence rules are the same for all languages");
  t.ignore("seq-length", "documents are never split");
  t.ignore("chunk-size", "threads take documents as they come");
  t.ignore("trust-remote-code", "no external code is run");
}

}  // namespace

void describe(OptionTable& table, PreprocessOptions& options) {
  describe_lines(table, options,
                 "Keys of the text in each JSON object; each key becomes a corpus of its own.");
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
