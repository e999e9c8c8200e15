#include "apps/retrieve/index_choice.h"

#include <fmt/core.h>

#include "apps/common/command_line.h"
#include "apps/common/progress_line.h"
#include "base/findings.h"

namespace bloomery {

void describe_index(OptionTable& t, IndexChoice& o) {
  t.section("passages");
  t.add("evidence-data-path", o.evidence,
        "Passages: rows of id, text and title, with a header line (DPR's psgs_w100.tsv).");
  t.add("data-path", o.data_path,
        "Passages from a corpus of sentences instead: its blocks, as `pretrain_ict` makes them.");
  t.add("titles-data-path", o.titles, "With --data-path: corpus with one title per document.");
  t.add("use-one-sent-docs", o.one_sentence, "Use documents of one sentence too.");
  t.add("index", o.index, "Index file of the passages and their embeddings.")
      .alias("embedding-path");
  t.add("retriever-seq-length", o.seq_length,
        "Maximum tokens per text; 0: 256, or the model's maximum if that is less.", at_least(0));
  t.add("indexer-batch-size", o.batch_size, "Texts per forward pass.", between(1, 1 << 20));
  t.add("indexer-log-interval", o.log_interval, "Batches between progress lines; 0: none.",
        at_least(0));
}

std::vector<std::string> problems(const IndexChoice& o) {
  Findings f;
  f.require(o.evidence.empty() || o.data_path.empty(),
            "--evidence-data-path and --data-path cannot be given together");
  f.require(o.data_path.empty() == o.titles.empty(),
            "--data-path and --titles-data-path need each other");
  return f.found;
}

std::int64_t make_index(const IndexChoice& o, LoadedModel& model, TextVectors& vectors) {
  const ForEachPassage passages = o.evidence.empty()
                                      ? passages_of_blocks({.data = o.data_path,
                                                            .titles = o.titles,
                                                            .seq_length = vectors.length(),
                                                            .one_sentence = o.one_sentence},
                                                           model.tokenizer())
                                      : passages_of_tsv(o.evidence);
  ProgressLine line("passages");
  std::int64_t batches = 0;
  return write_index(vectors, passages, model.folder().string(),
                     {.path = o.index,
                      .batch_size = o.batch_size,
                      .progress = [&](std::int64_t done, std::int64_t total) {
                        if (messages_on_terminal()) {
                          line.at(done, total);
                        } else if (o.log_interval > 0 && ++batches % o.log_interval == 0) {
                          messages() << fmt::format("Batch {:10d} | Total {:10d}\n", batches, done);
                        }
                      }});
}

void note_other_model(const PassageIndex& index, const LoadedModel& model) {
  const auto absolute = [](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(path);
  };
  if (absolute(index.model()) != absolute(model.folder())) {
    Log().warning("the index was made with ", index.model(), ", not with ", model.folder().string(),
                  ": search results are meaningful only if the models are the same");
  }
}

}  // namespace bloomery
