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
                    "usage: bloomery data dedup --input FILE... --output FOLDER [OPTIONS]\n",
                    [&] { return one_key(options); })) {
    return 0;
  }
  const StopSignals signals("stops; the same command goes on where it was");
  const DedupSummary summary = dedup(options, line_caller());
  if (summary.interrupted) return stopped_by_signal();
  if (summary.was_finished) say_finished(options.output);
  out << summary.report.text("dedup");
  if (!summary.was_finished) {
    out << "  " << grouped(summary.groups) << " groups of equal ones\n";
  }
  return 0;
}

}  // namespace bloomery
