// `bloomery data dedup`.
#include "text/dedup/dedup.h"

#include "apps/data/corpus_command.h"
#include "apps/data/data.h"
#include "base/number_text.h"
#include "base/stop_signals.h"

namespace bloomery {

int data_dedup(const Arguments& arguments, std::ostream& out) {
  DedupOptions options;
  options.log_interval = 100'000;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery data dedup --input FILE... --output FOLDER [OPTIONS]\n\nKeeps "
                    "one document of each duplicate group.\n\nexample:\n  bloomery data dedup "
                    "--input web.jsonl --output unique\n",
                    [&] { return one_key(options); })) {
    return 0;
  }
  const StopSignals signals("stops; run the same command again to continue");
  const DedupSummary summary = dedup(options, line_caller());
  if (summary.interrupted) return stopped_by_signal();
  if (summary.was_finished) log_finished(options.output);
  out << summary.report.text("dedup");
  if (!summary.was_finished) {
    out << "  " << grouped(summary.groups) << " duplicate groups\n";
  }
  return 0;
}

}  // namespace bloomery
