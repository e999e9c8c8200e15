#include "apps/retrieve/retrieve.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/common/command_line.h"
#include "apps/common/model_choice.h"
#include "apps/retrieve/index_choice.h"
#include "base/file.h"
#include "base/number_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

struct SearchOptions {
  ModelChoice model;
  std::string index, query_file;
  std::vector<std::string> queries;
  std::int64_t topk = 5, seq_length = 0;
  bool json = false;
};

void describe(OptionTable& t, SearchOptions& o) {
  t.section("search");
  t.add("index", o.index, "Index file, made by `bloomery retrieve index`.")
      .alias("embedding-path")
      .required();
  t.add("query", o.queries, "Queries.");
  t.add("queries", o.query_file, "File with one query per line.");
  t.add("topk", o.topk, "Passages printed per query.", between(1, 1e9))
      .alias("faiss-topk-retrievals");
  t.add("retriever-seq-length", o.seq_length,
        "Maximum tokens per query; 0: 256, or the model's maximum if that is less.", at_least(0));
  t.add("json", o.json,
        "Print one JSON object per query: {\"query\": ..., \"passages\": [{\"id\": ..., \"score\": "
        "..., \"title\": ..., \"text\": ...}]}.");
  describe(t, o.model);
}

std::vector<std::string> all_queries(const SearchOptions& o) {
  std::vector<std::string> queries = o.queries;
  if (!o.query_file.empty()) {
    const std::string text = read_file(o.query_file);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      line.erase(line.find_last_not_of("\r") + 1);
      if (!line.empty()) {
        queries.push_back(std::move(line));
      }
      at = end + 1;
    }
    check(!queries.empty(), o.query_file, " has no queries: write one per line");
  }
  for (const std::string& query : queries) {
    check(is_utf8(query), "the query '", query, "' is no valid UTF-8");
  }
  return queries;
}

void print(std::ostream& out, const SearchOptions& o, const std::string& query,
           const std::vector<Found>& found, const PassageIndex& index) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!o.json) {
    out << query << '\n';
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const TextPassage passage = index.passage(found[i].passage);
    if (o.json) {
      rows.push_back({{"id", passage.id},
                      {"score", found[i].score},
                      {"title", passage.title},
                      {"text", passage.text}});
    } else {
      out << fmt::format("{:4d}. {:10.4f}  {}  {}\n      {}\n", i + 1, found[i].score, passage.id,
                         passage.title, passage.text);
    }
  }
  if (o.json) {
    out << nlohmann::ordered_json{{"query", query}, {"passages", rows}}.dump() << '\n';
  }
}

}  // namespace

int retrieve(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery retrieve",
      {
          {"index", "Embed passages into an index", retrieve_index},
          {"search", "Search an index for the passages nearest to queries", retrieve_search},
      },
      arguments, out);
}

int retrieve_index(const Arguments& arguments, std::ostream& out) {
  IndexChoice options;
  ModelChoice choice;
  bool overwrite = false;
  OptionTable table;
  describe_index(table, options);
  table.add("overwrite", overwrite, "Replace an existing index.");
  describe(table, choice);
  ignore_training_flags(table, arguments);
  const auto wrong = [&] {
    std::vector<std::string> found = problems(options);
    if (!options.names_passages()) {
      found.emplace_back(
          "give the passages: --evidence-data-path FILE.tsv, or --data-path PREFIX with "
          "--titles-data-path PREFIX");
    }
    if (options.index.empty()) {
      found.emplace_back("--index is missing: the file to write");
    }
    return found;
  };
  if (!read_options(
          table, arguments, out,
          "usage: bloomery retrieve index --load DIR --evidence-data-path FILE.tsv --index FILE "
          "[OPTIONS]\n\nEmbeds passages into an index.\n\nexample:\n  bloomery retrieve index "
          "--load run/ict --evidence-data-path psgs_w100.tsv --index passages.index\n",
          wrong)) {
    return 0;
  }
  if (!overwrite) {
    refuse_to_overwrite({options.index});
  }
  LoadedModel model(choice.options());
  choice.require_sizes(model);
  TextVectors vectors(model, options.seq_length);
  const std::int64_t count = make_index(options, model, vectors);
  out << options.index << ": " << counted(count, "passage") << ", embeddings of size "
      << vectors.width() << '\n';
  return 0;
}

int retrieve_search(const Arguments& arguments, std::ostream& out) {
  SearchOptions options;
  OptionTable table;
  describe(table, options);
  const auto wrong = [&]() -> std::vector<std::string> {
    return options.queries.empty() && options.query_file.empty()
               ? std::vector<std::string>{"give --query TEXT, or --queries FILE"}
               : std::vector<std::string>();
  };
  if (!read_options(
          table, arguments, out,
          "usage: bloomery retrieve search --load DIR --index FILE --query TEXT...\n\nPrints the "
          "passages nearest to queries.\n\nexample:\n  bloomery retrieve search --load run/ict "
          "--index passages.index --query \"who wrote faust\"\n",
          wrong)) {
    return 0;
  }
  const std::vector<std::string> queries = all_queries(options);
  const PassageIndex index(options.index);
  LoadedModel model(options.model.options());
  options.model.require_sizes(model);
  note_other_model(index, model);
  TextVectors vectors(model, options.seq_length);
  constexpr std::size_t kAtOnce = 128;
  for (std::size_t first = 0; first < queries.size(); first += kAtOnce) {
    std::vector<std::vector<TokenId>> tokens;
    for (std::size_t i = first; i < std::min(queries.size(), first + kAtOnce); ++i) {
      tokens.push_back(vectors.query(queries[i]));
    }
    const auto found = index.search(vectors.stream(), vectors.queries(tokens), options.topk);
    for (std::size_t i = 0; i < found.size(); ++i) {
      print(out, options, queries[first + i], found[i], index);
    }
  }
  return 0;
}

}  // namespace bloomery
