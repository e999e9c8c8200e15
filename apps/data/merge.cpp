// `bloomery data merge`, and Megatron's name of it, `merge_datasets`.
#include "apps/common/command_line.h"
#include "apps/data/common.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/log.h"
#include "corpus/corpus_scan.h"
#include "corpus/corpus_tools.h"

namespace bloomery {
namespace {

struct MergeOptions {
  std::vector<std::string> input;
  std::string output_prefix;
  bool count_eod = false, allow_tokenizer_mismatch = false;
};

void describe(OptionTable& t, MergeOptions& o) {
  t.section("corpora");
  t.add("input", o.input,
        "Corpus prefixes, in the order of the result; a folder stands for all corpora in it, by "
        "name.")
      .positional()
      .required();
  t.add("output-prefix", o.output_prefix,
        "Prefix of the merged corpus: its path without .bin and .idx.")
      .required();
  t.add("count-eod", o.count_eod,
        "Count the end-of-document tokens of Megatron-DeepSpeed's corpora, whose lengths leave "
        "them out.");
  t.add("allow-tokenizer-mismatch", o.allow_tokenizer_mismatch,
        "Merge corpora whose notes name different tokenizers.");
}

void append(IndexedWriter& writer, TokenType type, const IndexedCorpus& corpus, bool count_eod,
            const Log& log) {
  if (corpus.num_uncounted_tokens() > 0 && count_eod) {
    check(uncounted_eod(corpus).has_value(), corpus.prefix().string(), " has ",
          corpus.num_uncounted_tokens(),
          " tokens that no length counts, but they are not one end-of-document token after each "
          "document; make the corpus again, or leave --count-eod out");
    append_counting_eod(writer, type, corpus);
    return;
  }
  if (corpus.num_uncounted_tokens() > 0) {
    log.warning(corpus.prefix().string(), ": the last ", corpus.num_uncounted_tokens(),
                " tokens of its .bin, which no length counts, are left out; --count-eod keeps the "
                "end-of-document tokens");
  }
  writer.append(corpus);
}

}  // namespace

int data_merge(const Arguments& arguments, std::ostream& out) {
  MergeOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery data merge PREFIX... --output-prefix PREFIX "
                    "[OPTIONS]\n\nMerges corpora into one.\n\nexample:\n  bloomery data merge "
                    "run/a_text_document run/b_text_document --output-prefix run/ab\n")) {
    return 0;
  }
  const Log log;
  const std::vector<std::filesystem::path> prefixes = corpus_prefixes(options.input);
  std::vector<IndexedCorpus> corpora(prefixes.begin(), prefixes.end());
  const auto tokenizer = common_tokenizer(prefixes, options.allow_tokenizer_mismatch);
  const TokenType type = common_type(corpora);
  IndexedWriter writer(options.output_prefix, type);
  if (tokenizer) {
    writer.set_tokenizer(*tokenizer);
  }
  for (const IndexedCorpus& corpus : corpora) {
    append(writer, type, corpus, options.count_eod, log);
    log.info("added ", corpus.prefix().string(), ": ", counted(corpus.num_documents(), "document"),
             ", ", counted(corpus.num_tokens(), "token"));
  }
  writer.commit();
  out << options.output_prefix << ": " << corpora.size()
      << (corpora.size() == 1 ? " corpus, " : " corpora, ")
      << counted(writer.num_documents(), "document") << ", "
      << counted(writer.num_tokens(), "token") << " (" << name(type) << ")\n";
  return 0;
}

}  // namespace bloomery
