// `bloomery data verify`: every field of the index and every token.
#include "apps/common/command_line.h"
#include "apps/data/common.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "corpus/corpus_tools.h"

namespace bloomery {
namespace {

struct VerifyOptions {
  std::vector<std::string> input;
  int threads = 0;
  TokenizerOptions tokenizer;
};

void describe(OptionTable& t, VerifyOptions& o) {
  t.section("what to check");
  t.add("input", o.input, "Corpus prefixes (paths without .bin and .idx), or folders of corpora.")
      .positional()
      .required();
  t.add("num-threads", o.threads, "CPU threads; 0: all cores.", between(0, 4096));
  describe(t, o.tokenizer);  // --vocab-size among its options
}

// What ids must stay below: as told, else by the tokenizer; without either, any 32-bit id is good.
std::int64_t id_limit(const VerifyOptions& options) {
  const auto tokenizer = optional_tokenizer(options.tokenizer);
  if (options.tokenizer.vocab_size > 0) {
    return options.tokenizer.vocab_size;
  }
  return tokenizer ? tokenizer->vocab_size() : std::int64_t{1} << 31;
}

// Tokens that no sequence counts: the known defect of Megatron-DeepSpeed's tool is a warning,
// anything else means that .bin and .idx do not belong together.
void check_uncounted(const IndexedCorpus& corpus, const Log& log) {
  const std::int64_t extra = corpus.num_uncounted_tokens();
  if (extra == 0) {
    return;
  }
  const std::string prefix = corpus.prefix().string();
  const std::int64_t filled = corpus.num_documents() - corpus.num_empty_documents();
  check(extra == filled || extra == corpus.num_documents(), prefix, ".bin has ", extra,
        " tokens more than the lengths in its .idx add up to, and it has ", corpus.num_documents(),
        " documents: the two files do not belong together; make the corpus again");
  const auto eod = uncounted_eod(corpus);
  log.warning(
      prefix, ": the lengths do not count the end-of-document tokens",
      eod ? concat(" (id ", *eod, ")") : "", ", ", extra,
      " in all, as Megatron-DeepSpeed's preprocess_data writes them: documents are read "
      "shifted, as there; `bloomery data merge --count-eod` makes a corpus that counts them");
}

void verify(const std::filesystem::path& prefix, std::int64_t limit, ThreadPool& pool,
            std::ostream& out) {
  const IndexedCorpus corpus(prefix);
  check_uncounted(corpus, Log());
  PassReport report(corpus, "verify " + prefix.string());
  if (const auto stray = find_stray_token(corpus, limit, pool, report.progress())) {
    throw Error(concat(prefix.string(), ".bin: token ", stray->position, " (sequence ",
                       stray->sequence, ") is ", stray->id,
                       stray->id < 0 ? ", a negative id" : concat(", not below ", limit),
                       "; was it made with another vocabulary?"));
  }
  out << prefix.string() << ": good (" << name(corpus.format()) << ", " << name(corpus.type())
      << ", " << counted(corpus.num_documents(), "document") << ", "
      << counted(corpus.num_sequences(), "sequence") << ", "
      << counted(corpus.num_tokens(), "token");
  if (limit < std::int64_t{1} << 31) {
    out << ", all ids below " << grouped(limit);
  }
  out << ")" << std::endl;
}

}  // namespace

int data_verify(const Arguments& arguments, std::ostream& out) {
  VerifyOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery data verify PREFIX... [OPTIONS]\n\nChecks every field and every token "
          "of corpora.\n\nexample:\n  bloomery data verify run/my_text_document\n")) {
    return 0;
  }
  const std::int64_t limit = id_limit(options);
  ThreadPool pool(options.threads);
  for (const std::filesystem::path& prefix : corpus_prefixes(options.input)) {
    verify(prefix, limit, pool, out);
  }
  return 0;
}

}  // namespace bloomery
