// `bloomery data inspect`: what a corpus holds, as a page for people or as one JSON object.
#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "apps/common/command_line.h"
#include "apps/data/common.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "corpus/corpus_tools.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string input;
  std::int64_t top = 20, samples = 3, sample_tokens = 64;
  bool json = false;
  int threads = 0;
  TokenizerOptions tokenizer;
};

void describe(OptionTable& t, InspectOptions& o) {
  t.section("what to show");
  t.add("input", o.input, "Corpus prefix: the path without .bin and .idx.").positional().required();
  t.add("top", o.top, "Number of most frequent tokens to print.", at_least(0));
  t.add("samples", o.samples, "Number of documents to print, spread over the corpus.", at_least(0));
  t.add("sample-tokens", o.sample_tokens, "Number of tokens to print of each document.",
        at_least(1));
  t.add("json", o.json, "Print one JSON object instead of a page.");
  t.add("num-threads", o.threads, "CPU threads; 0: all cores.", between(0, 4096));
  describe(t, o.tokenizer);
}

Json to_json(const LengthHistogram& histogram) {
  Json buckets = Json::array();
  for (std::size_t bits = 0; bits < histogram.of_bits.size(); ++bits) {
    if (histogram.of_bits[bits] > 0) {
      const std::int64_t last = (std::int64_t{1} << bits) - 1;
      const std::int64_t first = bits == 0 ? 0 : std::int64_t{1} << (bits - 1);
      buckets.push_back({{"from", first}, {"to", last}, {"count", histogram.of_bits[bits]}});
    }
  }
  return {{"shortest", histogram.shortest},
          {"mean", histogram.mean()},
          {"longest", histogram.longest},
          {"histogram", buckets}};
}

Json frequent_tokens(const TokenCounts& counts, const InspectOptions& options,
                     const Tokenizer* tokenizer) {
  Json tokens = Json::array();
  for (const TokenId id : counts.most_frequent(static_cast<std::size_t>(options.top))) {
    Json token = {{"id", id}, {"count", counts.of_id[static_cast<std::size_t>(id)]}};
    if (tokenizer != nullptr) {
      token["piece"] = id < tokenizer->vocab_size() ? tokenizer->piece(id) : "";
    }
    tokens.push_back(token);
  }
  return tokens;
}

// Documents at equal distances, the first among them.
Json samples(const IndexedCorpus& corpus, const InspectOptions& options,
             const Tokenizer* tokenizer) {
  Json result = Json::array();
  const std::int64_t count = std::min(options.samples, corpus.num_documents());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t document =
        corpus.num_documents() / count * i + corpus.num_documents() % count * i / count;
    const std::int64_t begin = corpus.first_token(corpus.first_sequence(document));
    const std::int64_t length = corpus.first_token(corpus.first_sequence(document + 1)) - begin;
    std::vector<TokenId> ids(static_cast<std::size_t>(std::min(length, options.sample_tokens)));
    corpus.read_bin(begin, ids);
    Json sample = {{"document", document}, {"length", length}, {"ids", ids}};
    if (tokenizer != nullptr) {
      check(std::ranges::all_of(
                ids, [&](TokenId id) { return id >= 0 && id < tokenizer->vocab_size(); }),
            corpus.prefix().string(), ": document ", document, " has ids outside the ",
            tokenizer->vocab_size(),
            " tokens of the tokenizer: the corpus was made with another tokenizer");
      sample["text"] = tokenizer->decode(ids);
    }
    result.push_back(sample);
  }
  return result;
}

Json inspect(const IndexedCorpus& corpus, const InspectOptions& options,
             const Tokenizer* tokenizer) {
  ThreadPool pool(options.threads);
  PassReport report(corpus, "inspect " + corpus.prefix().string());
  const TokenCounts counts = count_tokens(corpus, pool, report.progress());
  const auto bytes = [](const std::filesystem::path& path) {
    return std::filesystem::file_size(path);
  };
  const auto made_with = read_corpus_tokenizer(corpus.prefix());
  return {{"prefix", corpus.prefix().string()},
          {"tokenizer", made_with ? Json(made_with->name) : Json()},
          {"format", name(corpus.format())},
          {"dtype", name(corpus.type())},
          {"documents", corpus.num_documents()},
          {"empty_documents", corpus.num_empty_documents()},
          {"sequences", corpus.num_sequences()},
          {"tokens", corpus.num_tokens()},
          {"uncounted_tokens", corpus.num_uncounted_tokens()},
          {"bin_bytes", bytes(bin_path(corpus.prefix()))},
          {"idx_bytes", bytes(idx_path(corpus.prefix()))},
          {"distinct_tokens", counts.num_distinct()},
          {"largest_token", static_cast<std::int64_t>(counts.of_id.size()) - 1},
          {"negative_tokens", counts.negative},
          {"tokens_beyond", counts.beyond},
          {"document_lengths", to_json(document_lengths(corpus, pool))},
          {"sequence_lengths", to_json(sequence_lengths(corpus, pool))},
          {"frequent_tokens", frequent_tokens(counts, options, tokenizer)},
          {"samples", samples(corpus, options, tokenizer)}};
}

std::string quoted(const Json& text) {
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print_lengths(const std::string& title, const Json& lengths, std::ostream& out) {
  constexpr std::int64_t kBar = 40;
  out << '\n'
      << title << ": shortest " << grouped(lengths["shortest"]) << ", mean " << std::fixed
      << std::setprecision(1) << lengths["mean"].get<double>() << ", longest "
      << grouped(lengths["longest"]) << '\n';
  std::int64_t most = 1;
  for (const Json& bucket : lengths["histogram"]) {
    most = std::max(most, bucket["count"].get<std::int64_t>());
  }
  for (const Json& bucket : lengths["histogram"]) {
    const std::int64_t count = bucket["count"];
    const auto bar = static_cast<std::size_t>(std::max(
        1.0, static_cast<double>(kBar) * static_cast<double>(count) / static_cast<double>(most)));
    out << std::setw(14) << grouped(bucket["from"]) << " - " << std::setw(13) << std::left
        << grouped(bucket["to"]) << std::right << std::setw(15) << grouped(count) << "  "
        << std::string(bar, '#') << '\n';
  }
}

void print_tokens(const Json& all, std::ostream& out) {
  const double total = static_cast<double>(all["tokens"].get<std::int64_t>() +
                                           all["uncounted_tokens"].get<std::int64_t>());
  out << "\nmost frequent of " << grouped(all["distinct_tokens"]) << " distinct tokens\n";
  for (const Json& token : all["frequent_tokens"]) {
    const std::int64_t count = token["count"];
    out << std::setw(14) << token["id"].get<TokenId>() << std::setw(18) << grouped(count)
        << std::setw(8) << std::setprecision(2) << 100.0 * static_cast<double>(count) / total
        << "%";
    out << (token.contains("piece") ? "  " + quoted(token["piece"]) : "") << '\n';
  }
}

void print(const Json& all, std::ostream& out) {
  out << all["prefix"].get<std::string>() << ": " << all["format"].get<std::string>() << ", "
      << all["dtype"].get<std::string>();
  if (!all["tokenizer"].is_null()) {
    out << ", made with the tokenizer " << all["tokenizer"].get<std::string>();
  }
  out << '\n';
  for (const char* key : {"documents", "empty_documents", "sequences", "tokens", "uncounted_tokens",
                          "largest_token", "negative_tokens", "bin_bytes", "idx_bytes"}) {
    std::string title = key;
    std::ranges::replace(title, '_', ' ');
    out << "  " << std::setw(20) << std::left << title << std::right << std::setw(20)
        << grouped(all[key]) << '\n';
  }
  print_lengths("tokens per document", all["document_lengths"], out);
  if (all["sequences"] != all["documents"]) {
    print_lengths("tokens per sequence", all["sequence_lengths"], out);
  }
  print_tokens(all, out);
  for (const Json& sample : all["samples"]) {
    out << "\ndocument " << grouped(sample["document"]) << ", "
        << counted(sample["length"].get<std::int64_t>(), "token") << "\n  "
        << quoted(sample.contains("text") ? sample["text"] : sample["ids"]) << '\n';
  }
}

}  // namespace

int data_inspect(const Arguments& arguments, std::ostream& out) {
  InspectOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery data inspect PREFIX [OPTIONS]\n\nPrints statistics and "
                    "samples of a corpus.\n\nexample:\n  bloomery data inspect "
                    "run/my_text_document --tokenizer run/tokenizer\n")) {
    return 0;
  }
  const auto tokenizer = optional_tokenizer(options.tokenizer);
  const IndexedCorpus corpus(corpus_prefixes({options.input}).at(0));
  const Json all = inspect(corpus, options, tokenizer.get());
  if (options.json) {
    out << quoted(all) << '\n';
  } else {
    print(all, out);
  }
  return 0;
}

}  // namespace bloomery
