#include "samples/mapping.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/error.h"
#include "corpus/indexed_corpus.h"
#include "samples/shuffled_rows.h"

namespace bloomery {
namespace {

// Target lengths: mostly the maximum, now and then a shorter one.
class Targets {
 public:
  explicit Targets(const MappingOptions& options)
      : maximum_(options.max_length),
        ratio_(options.short_seq_prob > 0 ? std::llround(1.0 / options.short_seq_prob) : 0),
        words_(static_cast<std::uint32_t>(options.seed)) {}

  std::int64_t next() {
    if (ratio_ == 0) {
      return maximum_;
    }
    const auto word = static_cast<std::int64_t>(words_());
    return word % ratio_ == 0 ? 2 + word % (maximum_ - 1) : maximum_;
  }

 private:
  std::int64_t maximum_, ratio_;
  std::mt19937 words_;
};

template <class T>
class MappingBuilder {
 public:
  MappingBuilder(const Sentences& sentences, const MappingOptions& options)
      : sentences_(sentences), options_(options), targets_(options) {}

  std::vector<MappingRow<T>> build() {
    for (std::int64_t epoch = 0; epoch < options_.num_epochs && !enough(); ++epoch) {
      for (std::size_t d = 0; d + 1 < sentences_.borders.size(); ++d) {
        add_document(sentences_.borders[d], sentences_.borders[d + 1]);
      }
      check(!rows_.empty(), "no document of this split has at least ", options_.min_sentences,
            options_.min_sentences == 1 ? " sentence" : " sentences", " of at most ",
            kLongestSentence, " tokens; was the corpus made with --split-sentences?");
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
    if (last - first > 1) {
      for (std::int64_t sentence = first; sentence < last; ++sentence) {
        if (length(sentence) > kLongestSentence) {
          return false;
        }
      }
    }
    return last - first >= options_.min_sentences;
  }

  void add_document(std::int64_t first, std::int64_t last) {
    if (!is_usable(first, last)) {
      return;
    }
    std::int64_t target = targets_.next();
    std::int64_t tokens = 0;
    for (std::int64_t sentence = first; sentence < last; ++sentence) {
      tokens += length(sentence);
      const std::int64_t end = sentence + 1;
      const bool full = tokens >= target && last - end > 1 && end - first >= options_.min_sentences;
      if (full || end == last) {
        rows_.push_back({static_cast<T>(first), static_cast<T>(end), static_cast<T>(target)});
        first = end;
        tokens = 0;
        target = targets_.next();
      }
    }
  }

  const Sentences& sentences_;
  const MappingOptions& options_;
  Targets targets_;
  std::vector<MappingRow<T>> rows_;
};

}  // namespace

Sentences sentences_of(const IndexedCorpus& corpus, const SplitRange& documents) {
  Sentences sentences;
  sentences.borders = corpus.first_sequences(documents.first, documents.last + 1);
  sentences.lengths = corpus.lengths(sentences.borders.front(), sentences.borders.back());
  return sentences;
}

template <class T>
std::vector<MappingRow<T>> build_mapping(const Sentences& sentences,
                                         const MappingOptions& options) {
  check(options.max_length > 1, "a sequence length that leaves ", options.max_length,
        " tokens for text is too short");
  check(options.short_seq_prob >= 0 && options.short_seq_prob <= 1,
        "--short-seq-prob must be from 0 to 1, not ", options.short_seq_prob);
  check(options.seed > 0 && options.seed < INT32_MAX,
        "the seed of a sentence mapping must be from 1 to ", INT32_MAX - 1, ", not ", options.seed);
  return MappingBuilder<T>(sentences, options).build();
}

template std::vector<MappingRow<std::uint32_t>> build_mapping(const Sentences&,
                                                              const MappingOptions&);
template std::vector<MappingRow<std::uint64_t>> build_mapping(const Sentences&,
                                                              const MappingOptions&);

std::string mapping_path(const std::string& prefix, Split split, const MappingOptions& options) {
  std::string path = concat(prefix, "_", name(split), "_indexmap");
  if (options.exact_epochs) {
    path += concat("_exact", options.num_epochs, "ep");
  } else {
    path += options.num_epochs == kAnyEpochs ? "" : concat("_", options.num_epochs, "ep");
    path += options.max_samples == kAnySamples ? "" : concat("_", options.max_samples, "mns");
  }
  char short_seq_prob[32];
  std::snprintf(short_seq_prob, sizeof(short_seq_prob), "%.2f", options.short_seq_prob);
  return path +
         concat("_", options.max_length, "msl_", short_seq_prob, "ssp_", options.seed, "s.npy");
}

}  // namespace bloomery
