#include "data/samples/sentence_mapping.h"

#include <cstdio>

#include "base/error.h"
#include "data/indexed_corpus.h"
#include "data/samples/index_files.h"

namespace bloomery {
namespace {

constexpr const char* kSuffix = ".npy";

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
  const auto rows = build_mapping<T>(sentences_of(corpus, documents), options);
  const std::span<const T> flat(rows.empty() ? nullptr : rows.front().data(), rows.size() * 3);
  write_npy<T>(path, flat, {static_cast<std::int64_t>(rows.size()), 3});
}

}  // namespace

SentenceMapping::SentenceMapping(const IndexedCorpus& corpus, const CorpusRequest& request,
                                 const SplitRange& documents, const MappingOptions& options,
                                 const Log& log)
    : sentences_{corpus.first_sequence(documents.first), corpus.first_sequence(documents.last)} {
  const bool wide = corpus.num_sequences() > UINT32_MAX;
  const std::filesystem::path path = mapping_path(request.prefix, request.split, options);
  IndexFiles files;
  files.what = "the sentence mapping of " + request.prefix;
  files.stem = path.stem().string();
  files.suffixes = {kSuffix};
  files.contents = contents_of(corpus, documents, options);
  files.places = files.build_places = index_places(path.parent_path(), request.cache_folder);
  open_or_build(
      files,
      [&](const std::filesystem::path& stem) {
        const std::filesystem::path to = with_suffix(stem, kSuffix);
        wide ? write_mapping<std::uint64_t>(to, corpus, documents, options)
             : write_mapping<std::uint32_t>(to, corpus, documents, options);
      },
      [&](const std::filesystem::path& stem) {
        file_ = std::make_unique<NpyFile>(with_suffix(stem, kSuffix));
        check_array(*file_, wide ? NpyType::u64 : NpyType::u32, {file_->shape()[0], 3});
      },
      log);
}

MappingRow<std::int64_t> SentenceMapping::row(std::int64_t k) const {
  check(k >= 0 && k < size(), "sample ", k, " of ", size(), " was asked for");
  MappingRow<std::int64_t> row;
  if (file_->type() == NpyType::u32) {
    MappingRow<std::uint32_t> narrow;
    file_->read(3 * k, std::span<std::uint32_t>(narrow));
    row = {narrow[0], narrow[1], narrow[2]};
  } else {
    MappingRow<std::uint64_t> wide;
    file_->read(3 * k, std::span<std::uint64_t>(wide));
    row = {static_cast<std::int64_t>(wide[0]), static_cast<std::int64_t>(wide[1]),
           static_cast<std::int64_t>(wide[2])};
  }
  check(row[0] >= sentences_.first && row[0] < row[1] && row[1] <= sentences_.last,
        file_->path().string(), ": row ", k, " names the sentences ", row[0], " to ", row[1],
        ", outside of this split; the file is damaged: remove it");
  return row;
}

}  // namespace bloomery
