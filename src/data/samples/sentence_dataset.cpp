#include "data/samples/sentence_dataset.h"

#include "base/error.h"
#include "data/samples/cache_lock.h"

namespace bloomery {
namespace {

constexpr std::int64_t kBertExtra = 3, kT5Extra = 2;  // tokens of a sample that are not text

MappingOptions mapping_options(const SentenceDatasetOptions& options, std::int64_t extra,
                               std::int64_t min_sentences) {
  MappingOptions mapping;
  mapping.max_length = options.seq_length - extra;
  mapping.short_seq_prob = options.short_seq_prob;
  mapping.seed = options.seed;
  mapping.min_sentences = min_sentences;
  if (options.exact_epochs && options.split == Split::train) {
    mapping.exact_epochs = true;
    mapping.num_epochs = *options.exact_epochs;
  } else {
    check(options.num_samples > 0, "a sentence mapping needs the number of samples, or of epochs");
    mapping.max_samples = options.num_samples;
  }
  return mapping;
}

SplitRange documents_of(const IndexedCorpus& corpus, const SentenceDatasetOptions& options) {
  const SplitRange range =
      split_ranges(options.split_text, corpus.num_documents())[static_cast<int>(options.split)];
  check(range.size() > 0, "the ", name(options.split), " split of ", options.prefix,
        " has no documents; change --split '", options.split_text, "'");
  return range;
}

SentenceTokens sentences_of_row(const IndexedCorpus& corpus, const MappingRow<std::int64_t>& row) {
  SentenceTokens sentences;
  for (std::int64_t sentence = row[0]; sentence < row[1]; ++sentence) {
    sentences.emplace_back(corpus.length(sentence));
    corpus.read(sentence, 0, sentences.back());
  }
  return sentences;
}

// Megatron takes the sum of seed and sample modulo 2^32 for BERT and refuses a larger one for T5;
// we take the remainder for both.
NumpyRandom random_of(std::int64_t seed, std::int64_t k) {
  return NumpyRandom((seed + k) % (std::int64_t{1} << 32));
}

template <class T>
std::span<const T> flat(const std::vector<MappingRow<T>>& rows) {
  return {rows.empty() ? nullptr : rows.front().data(), rows.size() * 3};
}

}  // namespace

SentenceMapping::SentenceMapping(const IndexedCorpus& corpus, const std::string& prefix,
                                 Split split, const SplitRange& documents,
                                 const MappingOptions& options, const Log& log) {
  const std::filesystem::path path = mapping_path(prefix, split, options);
  if (corpus.num_sequences() > UINT32_MAX) {
    open<std::uint64_t>(corpus, path, documents, options, log);
  } else {
    open<std::uint32_t>(corpus, path, documents, options, log);
  }
}

template <class T>
void SentenceMapping::open(const IndexedCorpus& corpus, const std::filesystem::path& path,
                           const SplitRange& documents, const MappingOptions& options,
                           const Log& log) {
  const SplitRange sentences{corpus.first_sequence(documents.first),
                             corpus.first_sequence(documents.last)};
  if (try_to_load<T>(path, sentences, log)) {
    return;
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!is_writable_folder(folder)) {
    log.warning("cannot write the sentence mapping ", path.string(),
                "; it is kept in memory and built again at every start");
    auto rows = build_mapping<T>(sentences_of(corpus, documents), options);
    if constexpr (sizeof(T) == 4) {
      narrow_ = std::move(rows);
    } else {
      wide_ = std::move(rows);
    }
    return;
  }
  const CacheLock lock(folder, path.filename().string());
  if (try_to_load<T>(path, sentences, log)) {
    return;
  }
  const auto rows = build_mapping<T>(sentences_of(corpus, documents), options);
  write_npy<T>(path, flat(rows), {static_cast<std::int64_t>(rows.size()), 3});
  file_ = std::make_unique<NpyFile>(path);
}

template <class T>
bool SentenceMapping::try_to_load(const std::filesystem::path& path, const SplitRange& sentences,
                                  const Log& log) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return false;
  }
  try {
    auto file = std::make_unique<NpyFile>(path);
    check(file->shape().size() == 2 && file->shape()[1] == 3, path.string(),
          " does not have rows of three");
    const std::span<const T> values = file->values<T>();
    for (std::size_t i = 0; i < values.size(); i += 3) {
      check(values[i] >= static_cast<T>(sentences.first) && values[i] < values[i + 1] &&
                values[i + 1] <= static_cast<T>(sentences.last),
            path.string(), ": row ", i / 3, " names the sentences ", values[i], " to ",
            values[i + 1], ", outside of this split");
    }
    file_ = std::move(file);
    return true;
  } catch (const Error& error) {
    log.warning("the sentence mapping is not used and will be built again: ", error.what());
    return false;
  }
}

std::int64_t SentenceMapping::size() const {
  return file_ ? file_->shape()[0] : static_cast<std::int64_t>(narrow_.size() + wide_.size());
}

MappingRow<std::int64_t> SentenceMapping::row(std::int64_t k) const {
  check(k >= 0 && k < size(), "sample ", k, " of ", size(), " was asked for");
  const auto widen = [](const auto* row) -> MappingRow<std::int64_t> {
    return {static_cast<std::int64_t>(row[0]), static_cast<std::int64_t>(row[1]),
            static_cast<std::int64_t>(row[2])};
  };
  if (file_ && file_->type() == NpyType::u32) {
    return widen(&file_->values<std::uint32_t>()[3 * k]);
  }
  if (file_) {
    return widen(&file_->values<std::uint64_t>()[3 * k]);
  }
  return narrow_.empty() ? widen(wide_[k].data()) : widen(narrow_[k].data());
}

BertDataset::BertDataset(std::shared_ptr<const IndexedCorpus> corpus, MaskingVocabulary vocabulary,
                         const SentenceDatasetOptions& options, const Log& log)
    : corpus_(std::move(corpus)),
      vocabulary_(std::move(vocabulary)),
      options_(options),
      mapping_(*corpus_, options.prefix, options.split, documents_of(*corpus_, options),
               mapping_options(options, kBertExtra, options.binary_head ? 2 : 1), log) {}

BertSample BertDataset::sample(std::int64_t k) const {
  const MappingRow<std::int64_t> row = mapping_.row(k);
  NumpyRandom random = random_of(options_.seed, k);
  return make_bert_sample(sentences_of_row(*corpus_, row), row[2], options_.seq_length,
                          options_.mask_prob, options_.binary_head, vocabulary_, random);
}

T5Dataset::T5Dataset(std::shared_ptr<const IndexedCorpus> corpus, MaskingVocabulary vocabulary,
                     const SentenceDatasetOptions& options, const Log& log)
    : corpus_(std::move(corpus)),
      vocabulary_(std::move(vocabulary)),
      options_(options),
      mapping_(*corpus_, options.prefix, options.split, documents_of(*corpus_, options),
               mapping_options(options, kT5Extra, 1), log) {
  check(!vocabulary_.sentinels.empty(),
        "T5 samples need sentinel tokens; give --vocab-extra-ids 100");
}

T5Sample T5Dataset::sample(std::int64_t k) const {
  const MappingRow<std::int64_t> row = mapping_.row(k);
  NumpyRandom random = random_of(options_.seed, k);
  return make_t5_sample(sentences_of_row(*corpus_, row), row[2], options_.seq_length,
                        options_.decoder_seq_length, options_.mask_prob, vocabulary_, random);
}

}  // namespace bloomery
