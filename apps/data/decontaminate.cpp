// `bloomery data decontaminate`.
#include "text/decontaminate/decontaminate.h"

#include "apps/data/corpus_command.h"
#include "apps/data/data.h"
#include "base/number_text.h"
#include "base/stop_signals.h"
#include "text/input/input_files.h"

namespace bloomery {

int data_decontaminate(const Arguments& arguments, std::ostream& out) {
  DecontaminateOptions options;
  options.log_interval = 100'000;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery data decontaminate --input FILE... --test-sets FILE... --output FOLDER "
          "[OPTIONS]\n\nRemoves n-grams of test sets from documents.\n\nexample:\n  bloomery data "
          "decontaminate --input web.jsonl --test-sets test.jsonl --output clean\n",
          [&] { return one_key(options); })) {
    return 0;
  }
  const std::vector<TransformJob> jobs =
      jobs_in(options.output, input_files(options.input), options.keep_dropped);
  const StopSignals signals("stops; run the same command again to continue");
  const DecontaminateSummary summary = decontaminate(
      options, jobs, std::filesystem::path(options.output) / "report.json", line_caller());
  if (summary.interrupted) return stopped_by_signal();
  if (summary.was_finished) log_finished(options.output);
  out << summary.report.text("decontaminate");
  if (!summary.was_finished) {
    out << "  " << grouped(static_cast<std::int64_t>(summary.keys)) << " keys, of which "
        << summary.common_keys << " are common phrases\n";
  }
  return 0;
}

}  // namespace bloomery
