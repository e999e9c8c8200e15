#include "samples/datasets.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "corpus/corpus_name.h"
#include "corpus/indexed_corpus.h"
#include "samples/blend.h"
#include "tokenizer/load.h"
#include "tokenizer/tokenizer_hash.h"

namespace bloomery {
namespace {

bool is_format(CorpusFormat found, DataFormat asked) {
  const bool is_mmap = found == CorpusFormat::mmap;
  return asked == DataFormat::infer || is_mmap == (asked == DataFormat::mmap);
}

const char* option_of(const DataOptions& options, Split split) {
  if (!options.has_separate_paths()) {
    return "--data-path";
  }
  return split == Split::train   ? "--train-data-path"
         : split == Split::valid ? "--valid-data-path"
                                 : "--test-data-path";
}

struct NamedPaths {
  const char* flag;
  const std::vector<std::string>* words;
};

// Those that are given.
std::vector<NamedPaths> named_paths(const DataOptions& options) {
  std::vector<NamedPaths> all = {{"--data-path", &options.data_path},
                                 {"--train-data-path", &options.train_data_path},
                                 {"--valid-data-path", &options.valid_data_path},
                                 {"--test-data-path", &options.test_data_path}};
  std::erase_if(all, [](const NamedPaths& named) { return named.words->empty(); });
  return all;
}

}  // namespace

SplitRange CorpusRequest::range(std::int64_t count) const {
  return whole ? SplitRange{0, count} : split_ranges(split_text, count)[static_cast<int>(split)];
}

std::vector<std::string> corpora(const DataOptions& options) {
  std::vector<std::string> prefixes;
  for (const NamedPaths& named : named_paths(options)) {
    std::ranges::copy(parse_weighted_paths(*named.words, named.flag).prefixes,
                      std::back_inserter(prefixes));
  }
  return prefixes;
}

std::vector<std::string> missing_corpora(const DataOptions& options) {
  std::vector<std::string> lines;
  for (const NamedPaths& named : named_paths(options)) {
    for (const std::string& prefix : parse_weighted_paths(*named.words, named.flag).prefixes) {
      const std::string why = why_no_corpus(prefix);
      if (!why.empty()) lines.push_back(concat(named.flag, ": ", why));
    }
  }
  return lines;
}

std::string short_split(const std::string& prefix, Split split, std::int64_t tokens,
                        std::int64_t seq_length) {
  if (tokens > seq_length) {
    return "";
  }
  return concat("the ", name(split), " split of ", prefix, " has ", tokens,
                " tokens; a sample needs ", seq_length + 1,
                " (--seq-length and the next token), so samples repeat the same text. Give more "
                "text, a larger share in --split or a shorter --seq-length");
}

void require_corpora(const DataOptions& options) {
  std::string all;
  for (const std::string& line : missing_corpora(options)) {
    all += (all.empty() ? "" : "\n  ") + line;
  }
  check(all.empty(), all);
}

void require_tokenizer(const DataOptions& options, const std::vector<std::string>& corpora,
                       const Tokenizer& tokenizer, const TokenizerOptions& named) {
  const std::string name = tokenizer_name(named);
  if (options.allow_tokenizer_mismatch || name.empty()) return;
  require_corpus_tokenizer(corpora, tokenizer, name);
}

std::vector<std::string> short_splits(const DataOptions& options) {
  std::vector<std::string> lines;
  std::map<std::string, IndexedCorpus> corpora;
  for (const Split split : kSplits) {
    if (options.paths(split).empty()) {
      continue;
    }
    const CorpusRequest request{
        .split = split, .split_text = options.split, .whole = options.has_separate_paths()};
    for (const std::string& prefix :
         parse_weighted_paths(options.paths(split), option_of(options, split)).prefixes) {
      if (!std::filesystem::exists(bin_path(prefix)) ||
          !std::filesystem::exists(idx_path(prefix))) {
        continue;  // another message's matter
      }
      const IndexedCorpus& corpus = corpora.try_emplace(prefix, prefix).first->second;
      const SplitRange range = request.range(corpus.num_sequences());
      const std::int64_t tokens = corpus.first_token(range.last) - corpus.first_token(range.first);
      const std::string line =
          range.size() == 0 ? "" : short_split(prefix, split, tokens, options.seq_length);
      if (!line.empty()) {
        lines.push_back(line);
      }
    }
  }
  return lines;
}

DatasetBuilder::DatasetBuilder(const DataOptions& options, MakeDataset make, const Log& log)
    : options_(options), make_(std::move(make)), log_(log) {}

DatasetBuilder::~DatasetBuilder() = default;

std::shared_ptr<const IndexedCorpus> DatasetBuilder::open(const std::string& prefix) {
  std::shared_ptr<const IndexedCorpus>& corpus = corpora_[prefix];
  if (!corpus) {
    corpus = std::make_shared<const IndexedCorpus>(prefix);
    check(is_format(corpus->format(), options_.data_impl), "--data-impl does not fit ", prefix,
          ", which is ", corpus->format() == CorpusFormat::mmap ? "mmap" : "cached",
          "; use --data-impl infer");
    if (const std::int64_t uncounted = corpus->num_uncounted_tokens(); uncounted != 0) {
      log_.warning(prefix, ": ", uncounted,
                   " tokens at the end of the .bin belong to no document (",
                   uncounted == corpus->num_documents()
                       ? "the end-of-document tokens are not counted in the .idx"
                       : "the .idx counts fewer tokens",
                   "); samples are read as Megatron-DeepSpeed does, shifted against the documents; "
                   "preprocess the corpus again to be rid of this");
    }
  }
  return corpus;
}

std::unique_ptr<Dataset> DatasetBuilder::build_one(const std::string& prefix, Split split,
                                                   std::int64_t num_samples) {
  CorpusRequest request{.prefix = prefix,
                        .split = split,
                        .split_text = options_.split,
                        .whole = options_.has_separate_paths(),
                        .num_samples = num_samples,
                        .exact_epochs = {},
                        .cache_folder = options_.data_cache_path};
  if (split == Split::train) {
    request.exact_epochs = options_.train_data_exact_num_epochs;
  }
  return make_(open(prefix), request, log_);
}

// A --split may leave a split without documents; corpora that are given for one split alone may
// not.
void DatasetBuilder::check_documents(bool any, Split split) const {
  check(any || !options_.has_separate_paths(), option_of(options_, split),
        ": there are no documents in ", options_.paths(split).back(),
        "; give others or leave the option out");
}

std::unique_ptr<Dataset> DatasetBuilder::build(Split split, std::int64_t num_samples) {
  if (options_.paths(split).empty()) {
    return nullptr;
  }
  const WeightedPaths paths =
      parse_weighted_paths(options_.paths(split), option_of(options_, split));
  if (!paths.is_blend) {
    auto dataset = build_one(paths.prefixes.front(), split, num_samples);
    check_documents(dataset != nullptr, split);
    return dataset;
  }
  const std::vector<std::int64_t> sizes = paths.sizes(num_samples);
  std::vector<std::unique_ptr<Dataset>> datasets;
  std::string without;  // prefixes whose split is empty
  for (std::size_t i = 0; i < paths.prefixes.size(); ++i) {
    if (auto dataset = build_one(paths.prefixes[i], split, sizes[i])) {
      datasets.push_back(std::move(dataset));
    } else {
      without += (without.empty() ? "" : ", ") + paths.prefixes[i];
    }
  }
  if (datasets.empty()) {
    check_documents(false, split);
    return nullptr;
  }
  check(without.empty(), "the ", name(split), " split of ", without,
        " has no documents, those of other corpora of the blend do; change --split '",
        options_.split, "' or leave the corpus out");
  return std::make_unique<Blend>(std::move(datasets), paths.weights,
                                 std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}),
                                 options_.data_cache_path, log_);
}

}  // namespace bloomery
