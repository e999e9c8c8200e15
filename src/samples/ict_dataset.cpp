#include "samples/ict_dataset.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/generators/python_random.h"
#include "config/option_table.h"
#include "samples/blend.h"

namespace bloomery {
namespace {

BlockMappingOptions mapping_options(const SentenceSampleOptions& options,
                                    const CorpusRequest& request) {
  BlockMappingOptions mapping{.seq_length = options.seq_length,
                              .seed = options.seed,
                              .one_sentence = options.blocks.one_sentence};
  if (request.exact_epochs || request.num_samples == 0) {
    mapping.num_epochs = request.exact_epochs.value_or(1);
  } else {
    mapping.max_samples = request.num_samples;
  }
  return mapping;
}

void check_titles(const IndexedCorpus& titles, std::int64_t needed, const std::string& prefix) {
  check(titles.num_sequences() >= needed, "--titles-data-path ", titles.prefix().string(), " has ",
        titles.num_sequences(), " titles, but ", prefix, " needs ", needed,
        ": one for each document, in the same order");
}

void put(const Sample& out, std::string_view name, std::string_view length_name,
         const std::vector<TokenId>& tokens, TokenId pad) {
  const auto to = out.array<TokenId>(name);
  std::ranges::fill(std::ranges::copy(tokens, to.begin()).out, to.end(), pad);
  out.array<std::int32_t>(length_name)[0] = static_cast<std::int32_t>(tokens.size());
}

// The prefixes of all splits, each once, in the order of the options.
std::vector<std::string> all_prefixes(const DataOptions& data) {
  std::vector<std::string> all;
  for (const Split split : kSplits) {
    if (data.paths(split).empty()) {
      continue;
    }
    for (const std::string& prefix :
         parse_weighted_paths(data.paths(split), "--data-path").prefixes) {
      if (std::ranges::find(all, prefix) == all.end()) {
        all.push_back(prefix);
      }
    }
  }
  return all;
}

// Which corpus of titles belongs to which prefix.
std::map<std::string, std::string> titles_by_prefix(const std::vector<std::string>& titles,
                                                    const DataOptions& data) {
  const std::vector<std::string> prefixes = all_prefixes(data);
  check(!titles.empty(),
        "ICT samples need the titles of the documents: give --titles-data-path PREFIX, a corpus "
        "with one title for each document");
  check(titles.size() == 1 || titles.size() == prefixes.size(), "--titles-data-path has ",
        titles.size(), " prefixes for ", prefixes.size(), " corpora: give one, or one for each");
  std::map<std::string, std::string> found;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    found[prefixes[i]] = titles[titles.size() == 1 ? 0 : i];
  }
  return found;
}

}  // namespace

std::vector<TokenId> framed_text(TextFrame frame, const std::vector<TokenId>* title,
                                 std::vector<TokenId> text, std::int64_t length) {
  std::vector<TokenId> tokens = {frame.cls};
  if (title != nullptr) {
    const std::int64_t fitting = std::clamp<std::int64_t>(std::ssize(*title), 0, length - 3);
    tokens.insert(tokens.end(), title->begin(), title->begin() + fitting);
    tokens.push_back(frame.sep);
  }
  const std::int64_t left = length - 1 - std::ssize(tokens);
  text.resize(static_cast<std::size_t>(std::min(left, std::ssize(text))));
  tokens.insert(tokens.end(), text.begin(), text.end());
  tokens.push_back(frame.sep);
  return tokens;
}

SampleFields ict_fields(const SentenceSampleOptions& options) {
  return {{"tokens", DType::int32, {options.seq_length}},
          {"lengths", DType::int32, {}},
          {"encoder_tokens", DType::int32, {options.seq_length}},
          {"encoder_lengths", DType::int32, {}}};
}

IctDataset::IctDataset(std::shared_ptr<const IndexedCorpus> corpus,
                       std::shared_ptr<const IndexedCorpus> titles, const CorpusRequest& request,
                       const MaskingVocabulary& vocabulary, const SentenceSampleOptions& options,
                       const Log& log)
    : corpus_(std::move(corpus)),
      titles_(std::move(titles)),
      cls_(vocabulary.cls),
      sep_(vocabulary.sep),
      pad_(vocabulary.pad),
      options_(options),
      first_title_(
          options.blocks.titles_from_start ? 0 : request.range(corpus_->num_documents()).first),
      mapping_(*corpus_, *titles_, first_title_, request, request.range(corpus_->num_documents()),
               mapping_options(options, request), log),
      draws_(draw_all()),
      fields_(ict_fields(options)),
      description_(concat(
          "ICT Dataset\n\nMapping ",
          block_mapping_path(request.prefix, request.split, mapping_options(options, request)),
          "\nTitles ", titles_->prefix().string(), " from ", first_title_, "\nQueries in blocks ",
          options.blocks.query_in_block_prob, "\nSplit ", request.split_text, "\n")) {}

// Python's generator is one stream over all samples, and takes more of it for some than for others.
std::vector<IctDataset::Draw> IctDataset::draw_all() const {
  std::vector<Draw> draws;
  draws.reserve(static_cast<std::size_t>(size()));
  PythonRandom random(static_cast<std::uint64_t>(options_.seed));
  std::vector<BlockRow<std::int64_t>> rows(4096);
  while (std::ssize(draws) < size()) {
    rows.resize(std::min(rows.size(), static_cast<std::size_t>(size()) - draws.size()));
    mapping_.read(std::ssize(draws), rows);
    for (const BlockRow<std::int64_t>& row : rows) {
      const std::uint32_t sentence = random.below(static_cast<std::uint32_t>(row[1] - row[0]));
      draws.push_back({static_cast<std::int32_t>(sentence),
                       random.random() < options_.blocks.query_in_block_prob});
    }
  }
  return draws;
}

std::vector<TokenId> IctDataset::sentence(std::int64_t sentence) const {
  const SequencePlace place = corpus_->place(sentence);
  std::vector<TokenId> tokens(place.length);
  corpus_->read_bin(place.first_token, tokens);
  return tokens;
}

void IctDataset::read(std::int64_t k, const Sample& out) const {
  const auto [first, end, document, block] = mapping_.row(k);
  const Draw draw = draws_[static_cast<std::size_t>(k)];
  std::vector<TokenId> query, text;
  for (std::int64_t i = first; i < end; ++i) {
    const std::vector<TokenId> tokens = sentence(i);
    const bool is_query = i - first == draw.sentence;
    if (is_query) {
      query = tokens;
    }
    if (!is_query || draw.stays) {
      text.insert(text.end(), tokens.begin(), tokens.end());
    }
  }
  std::vector<TokenId> title(titles_->length(first_title_ + document));
  titles_->read(first_title_ + document, 0, title);
  const TextFrame frame{cls_, sep_};
  const std::int64_t length = options_.seq_length;
  put(out, "tokens", "lengths", framed_text(frame, nullptr, std::move(query), length), pad_);
  put(out, "encoder_tokens", "encoder_lengths", framed_text(frame, &title, std::move(text), length),
      pad_);
}

void describe_block_samples(OptionTable& t, SentenceSampleOptions& o) {
  t.section("ICT samples");
  t.add("titles-data-path", o.blocks.titles,
        "Prefix of a corpus with one title per document; or one prefix per corpus of --data-path.");
  t.add("query-in-block-prob", o.blocks.query_in_block_prob,
        "Probability that a query sentence stays in its block.", between(0, 1));
  t.add("use-one-sent-docs", o.blocks.one_sentence, "Use documents of one sentence too.");
  t.add("titles-from-corpus-start", o.blocks.titles_from_start,
        "Reproduce Megatron-DeepSpeed: documents of every split get the titles of the corpus's "
        "first documents.");
}

MakeDataset ict_samples(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary,
                        const DataOptions& data) {
  return [=, titles = titles_by_prefix(options.blocks.titles, data)](
             std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
             const Log& log) -> std::unique_ptr<Dataset> {
    const SplitRange documents = request.range(corpus->num_documents());
    if (documents.size() == 0) {
      return nullptr;
    }
    auto of_corpus = std::make_shared<const IndexedCorpus>(titles.at(request.prefix));
    check_titles(*of_corpus, options.blocks.titles_from_start ? documents.size() : documents.last,
                 request.prefix);
    return std::make_unique<IctDataset>(std::move(corpus), std::move(of_corpus), request,
                                        vocabulary, options, log);
  };
}

}  // namespace bloomery
