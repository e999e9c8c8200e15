#include <algorithm>
#include <set>

#include "base/error.h"
#include "config/option_table.h"
#include "data/preprocess/preprocess.h"

namespace bloomery {
namespace {

void describe_input(OptionTable& t, PreprocessOptions& o) {
  t.section("input");
  t.add("input", o.input,
        "Files and patterns ('data/*.jsonl.gz'), in this order; - is standard input. gzip, xz and "
        "zstd are recognised by content.")
      .required();
  t.add(
      "input-format", o.input_format,
      "What a line is: a JSON object or a document as it is; auto goes by name and content.",
      {{"auto", LineFormat::automatic}, {"jsonl", LineFormat::jsonl}, {"text", LineFormat::text}});
  t.add("json-keys", o.json_keys,
        "Keys whose strings become documents, each in a corpus of its own.")
      .alias("json-key");
  t.add("max-document-bytes", o.max_document_bytes,
        "A longer line counts as bad. Memory grows with this by about twelve times.",
        between(1, 1 << 30))
      .alias("max-document-length");
  t.add("strict", o.strict, "Stop at the first bad line instead of counting it.");
}

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
  t.add("workers", o.workers, "Threads that encode; 0 takes all cores, more is never used.",
        between(0, 1 << 16));
  t.add("partitions", o.partitions, "Accepted: the output is in input order with any number.",
        at_least(1));
  t.add("log-interval", o.log_interval, "Documents between progress lines.", at_least(1));
  t.ignore("lang", "the sentence rules are the same for all languages");
  t.ignore("seq-length", "documents are stored whole");
  t.ignore("trust-remote-code", "no code of others is run");
}

}  // namespace

void describe(OptionTable& table, PreprocessOptions& options) {
  describe_input(table, options);
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
  const bool adds_its_own = tokenizer_type == "HFTokenizer" || tokenizer_type == "Llama2Tokenizer";
  return {.add_special_tokens = options.add_special_tokens || adds_its_own,
          .parse_special = !options.no_parse_special && tokenizer_type != "GPT2BPETokenizer"};
}

}  // namespace bloomery
