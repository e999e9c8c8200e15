// The file that says which sentences make up each BERT or T5 sample of a split.
#pragma once

#include <memory>

#include "base/log.h"
#include "samples/datasets.h"
#include "samples/mapping.h"
#include "samples/mapping_file.h"

namespace bloomery {

// Found or built (index_files.h) beside the data under Megatron's name, which says neither the
// split nor the least number of sentences: those are in the key.
class SentenceMapping {
 public:
  SentenceMapping(const IndexedCorpus& corpus, const CorpusRequest& request,
                  const SplitRange& documents, const MappingOptions& options, const Log& log);

  std::int64_t size() const { return file_->size(); }
  MappingRow<std::int64_t> row(std::int64_t k) const;

 private:
  SplitRange sentences_;
  std::unique_ptr<MappingFile> file_;
};

}  // namespace bloomery
