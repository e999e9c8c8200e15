// `bloomery data clean` and `bloomery data filter`.
#include "text/filter/filter.h"

#include "apps/data/corpus_command.h"
#include "apps/data/data.h"
#include "base/stop_signals.h"

namespace bloomery {
namespace {

// `text` is the help below the usage.
int run(const std::string& name, const char* text, FilterOptions& options, OptionTable& table,
        const Arguments& arguments, std::ostream& out) {
  options.log_interval = 100'000;
  if (!read_options(table, arguments, out,
                    concat("usage: bloomery data ", name,
                           " --input FILE... --output FOLDER [OPTIONS]\n\n", text),
                    [&] { return problems(options); })) {
    return 0;
  }
  const StopSignals signals("stops; run the same command again to continue");
  const FilterSummary summary = filter(options, name, line_caller());
  if (summary.interrupted) return stopped_by_signal();
  if (summary.was_finished) log_finished(options.output);
  out << summary.report.text(name);
  return 0;
}

}  // namespace

int data_clean(const Arguments& arguments, std::ostream& out) {
  FilterOptions options;
  options.repair = true;
  OptionTable table;
  describe_clean(table, options);
  return run("clean",
             "Repairs broken text.\n\nexample:\n"
             "  bloomery data clean --input web.jsonl --output repaired\n",
             options, table, arguments, out);
}

int data_filter(const Arguments& arguments, std::ostream& out) {
  FilterOptions options;
  OptionTable table;
  describe_filter(table, options);
  return run("filter",
             "Drops documents by URL, length, language and quality.\n\nexample:\n"
             "  bloomery data filter --input web.jsonl --output good --rules gopher c4\n",
             options, table, arguments, out);
}

}  // namespace bloomery
