#include "samples/sentence_mapping.h"

#include <cstdio>

#include "base/error.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

std::string contents_of(const IndexedCorpus& corpus, const SplitRange& documents,
                        const MappingOptions& options) {
  char short_seq_prob[32];
  std::snprintf(short_seq_prob, sizeof(short_seq_prob), "%.17g", options.short_seq_prob);
  return concat("documents ", documents.first, " to ", documents.last, "\nleast sentences ",
                options.min_sentences, "\nepochs ", options.num_epochs, "\nsamples ",
                options.max_samples, "\nlongest ", options.max_length, "\nshort sequences ",
                short_seq_prob, "\nseed ", options.seed, "\n", corpus.fingerprint(), "\n");
}

template <class T>
void write_mapping(const std::filesystem::path& path, const IndexedCorpus& corpus,
                   const SplitRange& documents, const MappingOptions& options) {
  write_rows<T, 3>(path, build_mapping<T>(sentences_of(corpus, documents), options));
}

}  // namespace

SentenceMapping::SentenceMapping(const IndexedCorpus& corpus, const CorpusRequest& request,
                                 const SplitRange& documents, const MappingOptions& options,
                                 const Log& log)
    : sentences_{corpus.first_sequence(documents.first), corpus.first_sequence(documents.last)} {
  const bool wide = corpus.num_sequences() > UINT32_MAX;
  file_ = std::make_unique<MappingFile>(
      MappingFile::Facts{.path = mapping_path(request.prefix, request.split, options),
                         .what = "the sentence mapping of " + request.prefix,
                         .contents = contents_of(corpus, documents, options),
                         .cache_folder = request.cache_folder,
                         .columns = 3,
                         .wide = wide},
      [&](const std::filesystem::path& to) {
        wide ? write_mapping<std::uint64_t>(to, corpus, documents, options)
             : write_mapping<std::uint32_t>(to, corpus, documents, options);
      },
      log);
}

MappingRow<std::int64_t> SentenceMapping::row(std::int64_t k) const {
  MappingRow<std::int64_t> row;
  file_->read(k, row);
  check(row[0] >= sentences_.first && row[0] < row[1] && row[1] <= sentences_.last,
        file_->path().string(), ": row ", k, " names the sentences ", row[0], " to ", row[1],
        ", outside of this split; the file is damaged: remove it");
  return row;
}

}  // namespace bloomery
