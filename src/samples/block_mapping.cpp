#include "samples/block_mapping.h"

#include <algorithm>

#include "base/error.h"
#include "corpus/indexed_corpus.h"
#include "samples/shuffled_rows.h"

namespace bloomery {
namespace {

constexpr std::int64_t kSpecialTokens = 3;  // of [CLS] title [SEP] block [SEP]

template <class T>
class BlockBuilder {
 public:
  BlockBuilder(const Sentences& sentences, std::span<const std::int32_t> title_lengths,
               const BlockMappingOptions& options)
      : sentences_(sentences),
        title_lengths_(title_lengths),
        options_(options),
        min_sentences_(options.one_sentence ? 1 : 2) {}

  std::vector<BlockRow<T>> build() {
    for (std::int64_t epoch = 0; epoch < options_.num_epochs && !enough(); ++epoch) {
      block_ = 0;
      for (std::size_t d = 0; d + 1 < sentences_.borders.size(); ++d) {
        add_document(static_cast<std::int64_t>(d));
      }
      check(!rows_.empty(), "no document of this split has at least ", min_sentences_,
            " sentences, none of them longer than ", kLongestSentence,
            " tokens; was the corpus made with --split-sentences?");
    }
    shuffle_rows(rows_, options_.seed);
    return std::move(rows_);
  }

 private:
  bool enough() const { return static_cast<std::int64_t>(rows_.size()) >= options_.max_samples; }
  std::int32_t length(std::int64_t sentence) const {
    return sentences_.lengths[sentence - sentences_.borders.front()];
  }

  bool is_usable(std::int64_t first, std::int64_t last) const {
    for (std::int64_t sentence = first; sentence < last; ++sentence) {
      if (length(sentence) > kLongestSentence) {
        return false;
      }
    }
    return last - first >= min_sentences_;
  }

  void add_document(std::int64_t document) {
    std::int64_t first = sentences_.borders[document];
    const std::int64_t last = sentences_.borders[document + 1];
    if (!is_usable(first, last)) {
      return;
    }
    const std::int64_t target = options_.seq_length - kSpecialTokens - title_lengths_[document];
    std::int64_t tokens = 0;
    for (std::int64_t sentence = first; sentence < last; ++sentence) {
      tokens += length(sentence);
      const std::int64_t end = sentence + 1;
      const bool full =
          tokens >= target && last - end >= min_sentences_ && end - first >= min_sentences_;
      if (full || end == last) {
        rows_.push_back({static_cast<T>(first), static_cast<T>(end), static_cast<T>(document),
                         static_cast<T>(block_++)});
        first = end;
        tokens = 0;
      }
    }
  }

  const Sentences& sentences_;
  const std::span<const std::int32_t> title_lengths_;
  const BlockMappingOptions& options_;
  const std::int64_t min_sentences_;
  std::int64_t block_ = 0;
  std::vector<BlockRow<T>> rows_;
};

std::string contents_of(const IndexedCorpus& corpus, const IndexedCorpus& titles,
                        std::int64_t first_title, const SplitRange& documents,
                        const BlockMappingOptions& o) {
  return concat("blocks of documents ", documents.first, " to ", documents.last, "\ntitles from ",
                first_title, "\none sentence ", o.one_sentence, "\nepochs ", o.num_epochs,
                "\nsamples ", o.max_samples, "\nlength ", o.seq_length, "\nseed ", o.seed, "\n",
                corpus.fingerprint(), "\n", titles.fingerprint(), "\n");
}

template <class T>
void write_mapping(const std::filesystem::path& path, const IndexedCorpus& corpus,
                   const IndexedCorpus& titles, std::int64_t first_title,
                   const SplitRange& documents, const BlockMappingOptions& options) {
  const std::vector<std::int32_t> lengths =
      titles.lengths(first_title, first_title + documents.size());
  write_rows<T, 4>(path, build_block_mapping<T>(sentences_of(corpus, documents), lengths, options));
}

}  // namespace

template <class T>
std::vector<BlockRow<T>> build_block_mapping(const Sentences& sentences,
                                             std::span<const std::int32_t> title_lengths,
                                             const BlockMappingOptions& options) {
  check(options.seq_length > kSpecialTokens + 1, "--seq-length ", options.seq_length,
        " is too short for blocks of text");
  check(options.seed > 0 && options.seed < INT32_MAX,
        "the seed of a block mapping must be from 1 to ", INT32_MAX - 1, ", not ", options.seed);
  return BlockBuilder<T>(sentences, title_lengths, options).build();
}

template std::vector<BlockRow<std::uint32_t>> build_block_mapping(const Sentences&,
                                                                  std::span<const std::int32_t>,
                                                                  const BlockMappingOptions&);
template std::vector<BlockRow<std::uint64_t>> build_block_mapping(const Sentences&,
                                                                  std::span<const std::int32_t>,
                                                                  const BlockMappingOptions&);

std::string block_mapping_path(const std::string& prefix, Split split,
                               const BlockMappingOptions& o) {
  return concat(prefix, "_", name(split), "_indexmap",
                o.num_epochs == kAnyEpochs ? "" : concat("_", o.num_epochs, "ep"),
                o.max_samples == kAnySamples ? "" : concat("_", o.max_samples, "mns"), "_",
                o.seq_length, "msl_", o.seed, "s", o.one_sentence ? "_1sentok" : "", ".npy");
}

BlockMapping::BlockMapping(const IndexedCorpus& corpus, const IndexedCorpus& titles,
                           std::int64_t first_title, const CorpusRequest& request,
                           const SplitRange& documents, const BlockMappingOptions& options,
                           const Log& log)
    : documents_(documents),
      sentences_{corpus.first_sequence(documents.first), corpus.first_sequence(documents.last)} {
  const bool wide = corpus.num_sequences() > UINT32_MAX;
  file_ = std::make_unique<MappingFile>(
      MappingFile::Facts{.path = block_mapping_path(request.prefix, request.split, options),
                         .what = "the block mapping of " + request.prefix,
                         .contents = contents_of(corpus, titles, first_title, documents, options),
                         .cache_folder = request.cache_folder,
                         .columns = 4,
                         .wide = wide},
      [&](const std::filesystem::path& to) {
        wide ? write_mapping<std::uint64_t>(to, corpus, titles, first_title, documents, options)
             : write_mapping<std::uint32_t>(to, corpus, titles, first_title, documents, options);
      },
      log);
}

void BlockMapping::read(std::int64_t k, std::span<BlockRow<std::int64_t>> rows) const {
  if (rows.empty()) {
    return;
  }
  file_->read(k, {rows.front().data(), rows.size() * 4});
  for (const BlockRow<std::int64_t>& row : rows) {
    check(row[0] >= sentences_.first && row[0] < row[1] && row[1] <= sentences_.last &&
              row[2] >= 0 && row[2] < documents_.size(),
          file_->path().string(), ": a row names the sentences ", row[0], " to ", row[1],
          " of document ", row[2], ", outside of this split; the file is damaged: remove it");
  }
}

BlockRow<std::int64_t> BlockMapping::row(std::int64_t k) const {
  BlockRow<std::int64_t> row;
  read(k, std::span(&row, 1));
  return row;
}

}  // namespace bloomery
