// `find_duplicates` and `filter_ngrams`.
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/data/corpus_command.h"
#include "apps/openwebtext/common.h"
#include "apps/openwebtext/openwebtext.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number_text.h"
#include "base/stop_signals.h"
#include "text/decontaminate/decontaminate.h"
#include "text/input/input_files.h"
#include "text/lines/line_run.h"
#include "text/openwebtext/find_duplicates.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

struct FindOptions : LineOptions {
  FindDuplicatesOptions rules;
  std::vector<std::string> inputs;
  std::string output;
  bool overwrite = false;
};

void describe(OptionTable& t, FindOptions& o) {
  t.section("files");
  t.add("inputs", o.inputs,
        "Pairs of a JSONL file and the key of its ids; the text is under the key text.")
      .required();
  t.add("output", o.output,
        "Output file, one line per group: {\"main\": [{\"other\": similarity}, ...]}.")
      .required();
  t.add("overwrite", o.overwrite, "Replace existing output.");
  t.section("rules");
  t.add("jaccard", o.rules.jaccard, "Denominator of the similarity.",
        {{"union", Jaccard::by_union}, {"min", Jaccard::by_smaller}, {"max", Jaccard::by_larger}});
  t.add("heuristic-iter", o.rules.heuristic_iter, "Rounds per bucket; -1: until it is empty.",
        at_least(-1));
  t.add("num-bands", o.rules.num_bands, "Number of LSH bands.", between(1, 10'000));
  t.add("num-seeds", o.rules.num_seeds, "Number of hashes per signature.", between(1, 10'000));
  t.add("seed", o.rules.seed, "Seed of the hash functions.", between(0, UINT32_MAX));
  t.refuse("save-fingerprints", {}, "fingerprints are Python's pickles; give all --inputs at once");
  t.refuse("load-fingerprints", {}, "fingerprints are Python's pickles; give all --inputs at once");
  t.ignore("jaccard-parallel", "the result is the same");
  describe_workers(t, o);
}

struct Found {
  std::string id, text;
  std::vector<std::uint32_t> fingerprint;
};
struct FoundChunk : LineCounts {
  std::vector<Found> documents;
};

bool add_file(const FindOptions& options, const std::string& file, const std::string& key,
              DuplicateFinder& finder) {
  LineOptions lines = options;
  lines.json_keys = {key, "text"};
  lines.input_format = LineFormat::jsonl;
  const std::vector<std::uint32_t> seeds = fingerprint_seeds(options.rules);
  LineRun run(lines, line_caller(), input_files({file}));
  LineReader reader(run.files(), run.reader_options(), run.stop());
  const bool complete = run.run<FoundChunk>(
      {&reader},
      [&](std::size_t) {
        return [&, parts = std::make_shared<DocumentLines>(
                       lines.json_keys, static_cast<std::size_t>(lines.max_document_bytes))](
                   const LineChunk& chunk, FoundChunk& out) {
          out = {};
          parts->for_each(chunk, [&](const DocumentLine& line) {
            out.add(chunk, line);
            if (!line.fault.empty()) return;
            out.documents.push_back({std::string(line.texts[0]), std::string(line.texts[1]),
                                     byte_fingerprint(line.texts[1], seeds)});
          });
        };
      },
      [&](std::size_t, const LineChunk&, FoundChunk& found) {
        for (Found& document : found.documents) {
          finder.add(std::move(document.id), std::move(document.text), document.fingerprint);
        }
      });
  run.progress().finish();
  return complete;
}

struct FilterNgramsOptions : DecontaminateOptions {
  std::vector<std::string> tasks, dedup_dataset, task_files;
  std::string lambada_path;
};

void describe_flags(OptionTable& t, FilterNgramsOptions& o) {
  t.section("files");
  t.add("tasks", o.tasks,
        "Names of test sets, prefixes of the split_id of pieces. lambada is read from "
        "--lambada-path, the others from --task-files.")
      .required();
  t.add("lambada-path", o.lambada_path, "Test file of LAMBADA, JSONL.");
  t.add("task-files", o.task_files,
        "JSONL files of the other tasks, with texts under text, question or goal. Megatron's tool "
        "downloads them.");
  t.add("dedup-dataset", o.dedup_dataset, "JSONL file and the key of its text.").required();
  t.add("output", o.output, "Output file for the remaining text.").required();
  t.add("overwrite", o.overwrite, "Replace existing output.");
  t.section("rules");
  describe(t, o.ngrams);
  t.refuse("save-dictionary", {},
           "the dictionary is a Python pickle; it is computed again in one pass");
  t.refuse("load-dictionary", {},
           "the dictionary is a Python pickle; it is computed again in one pass");
  describe_workers(t, o);
}

std::vector<std::string> problems(const FilterNgramsOptions& o) {
  std::vector<std::string> found;
  if (o.dedup_dataset.size() != 2) found.push_back("--dedup-dataset: a file and a key");
  const bool lambada = std::ranges::find(o.tasks, "lambada") != o.tasks.end();
  if (lambada && o.lambada_path.empty()) found.push_back("--tasks lambada needs --lambada-path");
  if (o.tasks.size() - (lambada ? 1 : 0) != o.task_files.size()) {
    found.push_back("--task-files: give one file per task of --tasks except lambada");
  }
  return found;
}

}  // namespace

int find_duplicates(const Arguments& arguments, std::ostream& out) {
  FindOptions options;
  options.log_interval = 10'000;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery find_duplicates --inputs FILE KEY ... --output FILE\n\nexample:\n  "
          "bloomery find_duplicates --inputs web.jsonl url --output pairs.jsonl\n",
          [&]() -> std::vector<std::string> {
            if (options.inputs.size() % 2 == 0) return {};
            return {"--inputs: pairs of a file and a key"};
          })) {
    return 0;
  }
  check_output(options.output, options.overwrite);
  DuplicateFinder finder(options.rules);
  const StopSignals signals("stops without an output");
  for (std::size_t i = 0; i < options.inputs.size(); i += 2) {
    if (!add_file(options, options.inputs[i], options.inputs[i + 1], finder)) {
      return StopSignals::exit_code();
    }
  }
  AtomicFile output(options.output);
  std::int64_t found = 0;
  finder.for_each([&](const SimilarDocuments& group) {
    Json others = Json::array();
    for (const auto& [other, similarity] : group.others) {
      others.push_back(Json{{finder.id(other), similarity}});
      ++found;
    }
    output.write(Json{{finder.id(group.main), others}}.dump() + "\n");
  });
  output.commit();
  out << "found " << counted(found, "pair") << " of similar documents\n";
  return 0;
}

int filter_ngrams(const Arguments& arguments, std::ostream& out) {
  FilterNgramsOptions options;
  options.log_interval = 100'000;
  OptionTable table;
  describe_flags(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery filter_ngrams --tasks NAME... --dedup-dataset FILE KEY --output FILE "
          "[OPTIONS]\n\nexample:\n  bloomery filter_ngrams --tasks lambada --lambada-path "
          "lambada.jsonl --dedup-dataset web.jsonl text --output clean.jsonl\n",
          [&] { return problems(options); })) {
    return 0;
  }
  options.test_sets = options.task_files;
  if (!options.lambada_path.empty()) {
    options.test_sets.insert(options.test_sets.begin(), options.lambada_path);
  }
  options.json_keys = {options.dedup_dataset[1]};
  options.id_prefix.clear();
  for (const std::string& task : options.tasks) {
    options.id_prefix += (options.id_prefix.empty() ? "" : "-") + task;
  }
  const StopSignals signals("stops; run the same command again to continue");
  const DecontaminateSummary summary =
      decontaminate(options, {{input_files({options.dedup_dataset[0]})[0], options.output, {}}},
                    options.output + ".report.json", line_caller());
  if (summary.interrupted) return stopped_by_signal();
  if (summary.was_finished) log_finished(options.output);
  out << summary.report.text("filter_ngrams");
  if (!summary.was_finished) {
    out << "  " << grouped(static_cast<std::int64_t>(summary.keys)) << " keys, of which "
        << summary.common_keys << " are common phrases\n";
  }
  return 0;
}

}  // namespace bloomery
