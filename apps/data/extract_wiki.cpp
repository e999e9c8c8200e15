// `bloomery data extract-wiki`.
#include "text/wiki/extract_wiki.h"

#include <iostream>

#include "apps/data/corpus_command.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/stop_signals.h"

namespace bloomery {

int data_extract_wiki(const Arguments& arguments, std::ostream& out) {
  ExtractWikiOptions options;
  OptionTable table;
  table.section("files");
  table
      .add("input", options.input,
           "Wikipedia dump, pages-articles.xml, plain or compressed by gzip, xz or zstd; - is "
           "standard input (bzcat DUMP | ...).")
      .required();
  table.add("output", options.output, "New folder for the articles: AA/wiki_00 and so on.")
      .required();
  table.add("bytes", options.file_bytes, "Bytes per file, about.", between(1, 1e12));
  table.section("running");
  table.add("workers", options.workers, "Worker threads; 0: all cores.", between(0, 4096));
  if (!read_options(table, arguments, out,
                    "usage: bloomery data extract-wiki --input DUMP --output FOLDER\n\nExtracts "
                    "the articles of a Wikipedia dump as JSON lines.\n\nexample:\n  bloomery data "
                    "extract-wiki --input dewiki-pages-articles.xml.gz --output wiki\n")) {
    return 0;
  }
  check(!std::filesystem::exists(options.output), options.output,
        " is there already; remove it, or give another folder");
  const StopSignals signals("stops and removes its output");
  const ExtractWikiSummary summary = extract_wiki(options, line_caller());
  if (summary.interrupted) {
    std::cerr << "bloomery: stopped by " << signal_name(StopSignals::signal())
              << "; nothing was written" << std::endl;
    return StopSignals::exit_code();
  }
  out << options.output << ": " << counted(summary.articles, "article") << ", "
      << size_text(static_cast<double>(summary.bytes)) << " of text in "
      << counted(summary.files, "file") << "; " << counted(summary.empty, "article")
      << " without prose skipped\n";
  return 0;
}

}  // namespace bloomery
