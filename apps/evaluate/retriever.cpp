#include "apps/evaluate/retriever.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/common/progress_line.h"
#include "base/findings.h"
#include "retrieve/retriever_eval.h"
#include "text/input/python_text.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

Json evaluated(const RetrieverTask& o, const char* split, const std::vector<Question>& questions,
               TextVectors& vectors, const PassageIndex& index, bool quiet, std::ostream& out) {
  ProgressLine line("questions");
  const RetrieverResult result = evaluate_retriever(
      vectors, index, questions,
      {.topk = o.topk,
       .batch_size = o.index.batch_size,
       .progress = [&](std::int64_t done, std::int64_t total) { line.at(done, total); }});
  line.finish();
  std::string hits, accuracies;
  for (std::size_t k = 0; k < result.hits.size(); ++k) {
    const char* const between = k > 0 ? ", " : "";
    hits += between + std::to_string(result.hits[k]);
    accuracies += between + python_number(result.accuracy(k));
  }
  if (!quiet) {
    out << split << " SET RESULTS\ntopk-" << o.topk << " documents hits [" << hits
        << "]\ntop-k documents hits accuracy [" << accuracies << "]\n";
  }
  Json shares = Json::object();
  for (const std::int64_t k : o.report) {
    const auto place = static_cast<std::size_t>(std::min(k, std::ssize(result.hits))) - 1;
    shares[concat("top-", k)] = 100 * result.accuracy(place);
    if (!quiet) {
      out << fmt::format("top-{}: {:.2f}\n", k, 100 * result.accuracy(place));
    }
  }
  return {{"questions", result.num_questions}, {"hits", result.hits}, {"accuracy", shares}};
}

}  // namespace

void describe(OptionTable& t, RetrieverTask& o) {
  describe_index(t, o.index);
  t.section("questions");
  t.add("qa-data-dev", o.dev,
        "Development set: rows of a question and a list of answers (NQ-open).");
  t.add("qa-data-test", o.test, "Test set, in the same form.");
  t.add_choice("faiss-match", o.match, "Match of an answer in a passage: its words in sequence.",
               {"string"});
  t.add("faiss-topk-retrievals", o.topk, "Number of passages retrieved per question.",
        between(1, 1e9));
  t.add("retriever-report-topk-accuracies", o.report,
        "Values of k for the printed top-k accuracies.", between(1, 1e9));
  t.ignore("faiss-use-gpu", "--device sets where products are computed");
}

std::vector<std::string> problems(const RetrieverTask& o) {
  Findings f{problems(o.index)};
  f.require(!o.dev.empty() || !o.test.empty(),
            "give the questions: --qa-data-dev FILE, --qa-data-test FILE or both");
  f.require(!o.index.index.empty(),
            "--embedding-path is missing: the index of passages. With --evidence-data-path it is "
            "made there");
  for (const std::int64_t k : o.report) {
    f.require(k <= o.topk, "--retriever-report-topk-accuracies ", k,
              " is more than --faiss-topk-retrievals ", o.topk);
  }
  return f.found;
}

Json run_retriever_task(const RetrieverTask& o, LoadedModel& model, bool quiet, std::ostream& out) {
  TextVectors vectors(model, o.index.seq_length);
  struct Set {
    const char *name, *split;
    std::vector<Question> questions;
  };
  std::vector<Set> sets;  // read before the long work begins
  if (!o.dev.empty()) {
    sets.push_back({"dev", "DEV", read_questions(o.dev)});
  }
  if (!o.test.empty()) {
    sets.push_back({"test", "TEST", read_questions(o.test)});
  }
  if (o.index.names_passages()) {
    make_index(o.index, model, vectors);
  }
  const PassageIndex index(o.index.index);
  note_other_model(index, model);
  Json result;
  for (const auto& [name, split, questions] : sets) {
    result[name] = evaluated(o, split, questions, vectors, index, quiet, out);
  }
  return result;
}

}  // namespace bloomery
