// The samples of a split from the options: one corpus or a blend, with one split string or with
// paths of their own, of any kind of sample.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/log.h"
#include "samples/data_options.h"
#include "samples/dataset.h"

namespace bloomery {

class IndexedCorpus;
class Tokenizer;
struct TokenizerOptions;

// What is asked of one corpus for one split.
struct CorpusRequest {
  std::string prefix;  // as typed: it is part of the names of caches
  Split split = Split::train;
  std::string split_text = "969, 30, 1";  // as typed
  bool whole = false;                     // the corpus is of this split alone
  std::int64_t num_samples = 0;
  std::optional<std::int64_t> exact_epochs;
  std::string cache_folder;  // --data-cache-path

  // The part of `count` sequences or documents that belongs to the split.
  SplitRange range(std::int64_t count) const;
};

// The corpora that the options name, of all splits.
std::vector<std::string> corpora(const DataOptions& options);
// A line for every corpus that the options name and that is not there, with what may be meant.
std::vector<std::string> missing_corpora(const DataOptions& options);
// An Error with these lines, before anything that takes time.
void require_corpora(const DataOptions& options);
// An Error where one of these corpora was made with another tokenizer than this one, which the user
// has named so, unless the options allow it.
void require_tokenizer(const DataOptions& options, const std::vector<std::string>& corpora,
                       const Tokenizer& tokenizer, const TokenizerOptions& named);

// A line for every corpus of which a split has fewer tokens than one GPT sample, so that its
// samples repeat the same text. Opens the corpora that are there and writes nothing.
std::vector<std::string> short_splits(const DataOptions& options);
// That line; empty when there are tokens enough.
std::string short_split(const std::string& prefix, Split split, std::int64_t tokens,
                        std::int64_t seq_length);

// A kind of sample: makes those of one corpus. Null when the split has no documents.
using MakeDataset = std::function<std::unique_ptr<Dataset>(std::shared_ptr<const IndexedCorpus>,
                                                           const CorpusRequest&, const Log&)>;

// Opens each corpus once for all splits.
class DatasetBuilder {
 public:
  DatasetBuilder(const DataOptions& options, MakeDataset make, const Log& log);
  ~DatasetBuilder();

  // Null when the options name no data for this split, or their proportions leave it no documents.
  // The dataset may outlive this object.
  std::unique_ptr<Dataset> build(Split split, std::int64_t num_samples);

 private:
  std::shared_ptr<const IndexedCorpus> open(const std::string& prefix);
  void check_documents(bool any, Split split) const;
  std::unique_ptr<Dataset> build_one(const std::string& prefix, Split split,
                                     std::int64_t num_samples);

  const DataOptions options_;
  const MakeDataset make_;
  const Log log_;
  std::map<std::string, std::shared_ptr<const IndexedCorpus>> corpora_;
};

}  // namespace bloomery
