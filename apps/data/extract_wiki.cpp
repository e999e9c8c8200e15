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
           "A dump, pages-articles.xml, packed by gzip, xz or zstd or not; - is standard input "
           "(bzcat DUMP | ...).")
      .required();
  table.add("output", options.output, "A folder that is not there yet: AA/wiki_00 and so on.")
      .required();
  table.add("bytes", options.file_bytes, "About so many in a file.", between(1, 1e12));
  table.section("running");
  table.add("workers", options.workers, "Threads that work; 0 takes all cores.", between(0, 4096));
  if (!read_options(table, arguments, out,
                    "usage: bloomery data extract-wiki --input DUMP --output FOLDER\n")) {
    return 0;
  }
  check(!std::filesystem::exists(options.output), options.output,
        " is there already; remove it, or give another folder");
  const StopSignals signals("stops and removes what it wrote");
  const ExtractWikiSummary summary = extract_wiki(options, line_caller());
  if (summary.interrupted) {
    std::cerr << "bloomery: stopped by a signal; nothing was written" << std::endl;
    return StopSignals::exit_code();
  }
  out << options.output << ": " << grouped(summary.articles) << " articles, "
      << size_text(static_cast<double>(summary.bytes)) << " of text in " << summary.files
      << " files; " << grouped(summary.empty) << " articles without prose left out\n";
  return 0;
}

}  // namespace bloomery
