// The samples of a split from the options: one corpus or a blend, with one split string or with
// paths of their own.
#pragma once

#include <map>
#include <memory>

#include "base/log.h"
#include "data/samples/data_options.h"
#include "data/samples/sample_source.h"

namespace bloomery {

class IndexedCorpus;

// Opens each corpus once for all splits.
class DatasetBuilder {
 public:
  DatasetBuilder(const DataOptions& options, std::int64_t seed, const Log& log);
  ~DatasetBuilder();

  // Null when the options name no data for this split, or their proportions leave it no documents.
  // The source may outlive this object.
  std::unique_ptr<SampleSource> build(Split split, std::int64_t num_samples);

 private:
  std::shared_ptr<const IndexedCorpus> open(const std::string& prefix);
  std::unique_ptr<SampleSource> build_one(const std::string& prefix, Split split,
                                          std::int64_t num_samples);

  const DataOptions options_;
  const std::int64_t seed_;
  const Log log_;
  std::map<std::string, std::shared_ptr<const IndexedCorpus>> corpora_;
};

}  // namespace bloomery
