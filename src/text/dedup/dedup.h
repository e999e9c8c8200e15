// Duplicates out of a corpus of any size: by MinHash, or documents or paragraphs that are the same.
//
// Three passes. Fingerprints of all documents go to disk, one file for each input. Sorted, on disk
// where memory does not hold them, they show what is equal; of a group the first in the corpus
// stays. Then the inputs are read again and what is not removed is written. Memory: --memory for
// sorting, and with MinHash 4 bytes a document.
#pragma once

#include <string>

#include "text/dedup/minhash.h"
#include "text/lines/line_options.h"
#include "text/transform/transform_report.h"

namespace bloomery {

enum class DedupMethod { minhash, exact, paragraphs };

struct DedupOptions : LineOptions {
  DedupMethod method = DedupMethod::minhash;
  MinHashOptions minhash;
  std::int64_t memory_bytes = std::int64_t{512} << 20;
  std::string output;  // a folder
  bool overwrite = false, keep_dropped = false;
};

void describe(OptionTable& table, DedupOptions& options);

struct DedupSummary {
  TransformReport report;
  std::int64_t groups = 0;  // of documents, or paragraphs, that are equal
  bool interrupted = false;
  bool was_finished = false;  // by an earlier run, which knew the groups
};

DedupSummary dedup(const DedupOptions& options, const LineCaller& caller);

}  // namespace bloomery
