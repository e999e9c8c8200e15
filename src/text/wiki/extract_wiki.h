// A Wikipedia dump to JSON, as WikiExtractor's --json: files FOLDER/AA/wiki_00 and so on.
#pragma once

#include <cstdint>
#include <string>

#include "text/lines/line_options.h"

namespace bloomery {

struct ExtractWikiOptions {
  std::string input, output;
  std::int64_t file_bytes = 1 << 20;  // a file ends after the article that reaches it
  int workers = 0;
};

struct ExtractWikiSummary {
  std::int64_t articles = 0, empty = 0, files = 0;
  std::uint64_t bytes = 0;
  bool interrupted = false;  // nothing was written
};

// The folder appears whole or not at all.
ExtractWikiSummary extract_wiki(const ExtractWikiOptions& options, const LineCaller& caller);

}  // namespace bloomery
