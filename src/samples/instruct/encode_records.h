// Records of instruction data as tokens, made once for all ranks of a machine.
#pragma once

#include <memory>

#include "base/log.h"
#include "samples/instruct/encoded_records.h"

namespace bloomery {

// How records become tokens. What it refers to must outlive it.
struct RecordEncoding {
  const InstructOptions& options;
  const RecordTemplate& how;
  const Tokenizer& tokenizer;
};

// The records of these files (or patterns), in their order: read from a cache beside the first
// file, in `cache_folder` (if it is given) or in the user's own, or encoded by all threads and put
// there. What the tokens are functions of (bytes of the files, options, template, tokenizer) names
// the entry. Of several processes the first one encodes. An Error names the file and line of a bad
// record, and nothing is kept then.
std::shared_ptr<const EncodedRecords> encoded_records(const RecordEncoding& encoding,
                                                      const std::vector<std::string>& files,
                                                      const std::string& cache_folder,
                                                      const Log& log);

}  // namespace bloomery
