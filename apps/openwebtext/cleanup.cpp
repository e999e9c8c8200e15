// `cleanup_dataset` and `cleanup_fix_dataset`.
#include <algorithm>

#include "apps/data/corpus_command.h"
#include "apps/openwebtext/common.h"
#include "apps/openwebtext/openwebtext.h"
#include "base/error.h"
#include "base/stop_signals.h"
#include "text/filter/filter.h"
#include "text/filter/repair.h"
#include "text/filter/text_parts.h"
#include "text/filter/words.h"
#include "text/input/input_files.h"
#include "text/language/language.h"
#include "tokenizer/load.h"
#include "tokenizer/tokenizer_hash.h"
#include "tokenizer/unicode/normalize.h"

namespace bloomery {
namespace {

constexpr std::int64_t kShort = 1024, kLeastTokens = 128;

// Short texts must have enough tokens; without a tokenizer, words count.
FilterStep enough_tokens(std::shared_ptr<const Tokenizer> tokenizer) {
  std::shared_ptr<Encoder> encoder = tokenizer ? tokenizer->make_encoder({}) : nullptr;
  return [tokenizer, encoder](std::string& text, TransformReport&) -> std::string {
    if (characters(text) >= kShort) return {};
    std::vector<TokenId> ids;
    if (encoder) encoder->encode(text, ids);
    const std::size_t count = encoder ? ids.size() : words_of(text).size();
    return count < kLeastTokens ? concat("fewer than ", kLeastTokens, " tokens") : "";
  };
}

using MakeTransform = std::function<std::unique_ptr<LineTransform>()>;

int run(const LineOptions& lines, const TransformOutputs& outputs, const std::string& name,
        const MakeTransform& make_transform, std::ostream& out) {
  if (const auto report = outputs.finished()) {
    log_finished(outputs.jobs()[0].kept);
    out << report->text(name);
    return 0;
  }
  const StopSignals signals("stops; run the same command again to continue");
  const TransformResult result =
      transform_files(lines, line_caller(), outputs.jobs(), outputs.settings(), make_transform);
  if (!result.complete) return stopped_by_signal();
  outputs.finish(result.sum());
  out << result.sum().text(name);
  return 0;
}

struct FixOptions : LineOptions {
  std::vector<std::string> input_files, tasks;
  std::string output_path;
  bool overwrite = false;

  bool has(const char* task) const { return std::ranges::find(tasks, task) != tasks.end(); }
};

constexpr const char* kTasks[] = {"remove_512", "remove_256_javascript", "remove_512_non_english",
                                  "ftfy_fix_text", "general_cleaning"};

// The first task that applies ends the matter, as in the original.
std::string fix(const FixOptions& options, std::string& text) {
  const std::int64_t length = characters(text);
  if (options.has("remove_512") && length < 512) return "remove_512";
  if (options.has("remove_256_javascript") && length < 256) {
    std::string lower = text;
    lowercase(lower);
    if (lower.find("javascript") != lower.npos) return "remove_256_javascript";
  }
  if (options.has("remove_512_non_english") && length < 512 && language_of(text) != "en") {
    return "remove_512_non_english";
  }
  if (options.has("ftfy_fix_text")) {
    repair_text(text);
  } else if (options.has("general_cleaning")) {
    join_lines(text);
  }
  return {};
}

std::vector<TransformJob> fix_jobs(const FixOptions& options,
                                   const std::vector<std::string>& files) {
  const std::filesystem::path folder = options.output_path;
  std::vector<TransformJob> jobs;
  for (const std::string& file : files) {
    const std::filesystem::path path = file;
    const auto named = [&](const char* what) {
      return folder / concat(path.stem().string(), what, path.extension().string());
    };
    jobs.push_back({file, named("_cleaned"), named("_filtered")});
  }
  return jobs;
}

}  // namespace

int cleanup_dataset(const Arguments& arguments, std::ostream& out) {
  std::vector<std::string> words;
  bool overwrite = false;
  LineOptions lines;
  lines.log_interval = 100'000;
  TokenizerOptions tokenizer_options;
  OptionTable table;
  table.section("files");
  table.add("files", words, "Input and output, JSONL.").positional();
  table.add("overwrite", overwrite, "Replace existing output.");
  describe_workers(table, lines);
  describe(table, tokenizer_options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery cleanup_dataset INPUT OUTPUT [--tokenizer PATH]\n\nexample:\n "
                    " bloomery cleanup_dataset web.jsonl clean.jsonl\n",
                    [&]() -> std::vector<std::string> {
                      if (words.size() == 2) return {};
                      return {"give an input and an output"};
                    })) {
    return 0;
  }
  const bool has_tokenizer = !tokenizer_options.path.empty() || !tokenizer_options.type.empty();
  const auto tokenizer =
      has_tokenizer ? load_tokenizer(tokenizer_options) : std::shared_ptr<const Tokenizer>();
  const TransformOutputs outputs(
      {{input_files({words[0]})[0], words[1], {}}}, words[1] + ".report.json",
      {concat("cleanup_dataset ", tokenizer_name(tokenizer_options)), overwrite});
  FilterOptions steps;
  steps.repair = true;
  steps.languages = {"en"};
  return run(
      lines, outputs, "cleanup_dataset",
      [&] {
        std::vector<FilterStep> all = filter_steps(steps);
        all.push_back(enough_tokens(tokenizer));
        return make_filter_transform(all, "text", {words[0]});
      },
      out);
}

int cleanup_fix_dataset(const Arguments& arguments, std::ostream& out) {
  FixOptions options;
  options.log_interval = 100'000;
  OptionTable table;
  table.section("files");
  table.add("input-files", options.input_files, "Input files, JSONL.").required();
  table.add("output-path", options.output_path, "Output folder for NAME_cleaned and NAME_filtered.")
      .required();
  table.add("overwrite", options.overwrite, "Replace existing output.");
  table.section("tasks");
  table
      .add("tasks", options.tasks,
           "Rules: remove_512, remove_256_javascript, remove_512_non_english, ftfy_fix_text, "
           "general_cleaning. The first that matches a document applies.")
      .required();
  describe_workers(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery cleanup_fix_dataset --input-files FILE... --tasks TASK... "
                    "--output-path FOLDER\n\nexample:\n  bloomery cleanup_fix_dataset "
                    "--input-files web.jsonl --tasks remove_512 --output-path clean\n",
                    [&] {
                      std::vector<std::string> found;
                      for (const std::string& task : options.tasks) {
                        if (std::ranges::find(kTasks, task) == std::end(kTasks)) {
                          found.push_back("--tasks: there is no '" + task + "'");
                        }
                      }
                      return found;
                    })) {
    return 0;
  }
  const std::vector<std::string> files = input_files(options.input_files);
  std::string settings = "cleanup_fix_dataset";
  for (const std::string& task : options.tasks) settings += " " + task;
  const TransformOutputs outputs(fix_jobs(options, files),
                                 std::filesystem::path(options.output_path) / "report.json",
                                 {settings, options.overwrite});
  return run(
      options, outputs, "cleanup_fix_dataset",
      [&] {
        return make_filter_transform(
            {[&](std::string& text, TransformReport&) { return fix(options, text); }}, "text",
            files);
      },
      out);
}

}  // namespace bloomery
