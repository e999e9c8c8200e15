#include "retrieve/passages.h"

#include <algorithm>
#include <charconv>

#include "corpus/indexed_corpus.h"
#include "retrieve/tsv.h"
#include "samples/block_mapping.h"

namespace bloomery {
namespace {

std::int64_t parsed_id(const std::string& text, const std::string& place) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  check(error == std::errc() && end == text.data() + text.size(), place, " begins with '", text,
        "', which is no whole number; rows are id, text, title");
  return id;
}

std::string decoded(const Tokenizer& tokenizer, const IndexedCorpus& corpus, std::int64_t first,
                    std::int64_t last) {
  const std::int64_t begin = corpus.first_token(first);
  std::vector<TokenId> tokens(static_cast<std::size_t>(corpus.first_token(last) - begin));
  corpus.read_bin(begin, tokens);
  return tokenizer.decode(tokens);
}

// All blocks, by their numbers.
std::vector<BlockRow<std::uint64_t>> blocks_of(const IndexedCorpus& corpus,
                                               const IndexedCorpus& titles,
                                               const BlockCorpus& options) {
  const SplitRange all{0, corpus.num_documents()};
  auto rows = build_block_mapping<std::uint64_t>(
      sentences_of(corpus, all), titles.lengths(0, corpus.num_documents()),
      {.num_epochs = 1, .seq_length = options.seq_length, .one_sentence = options.one_sentence});
  std::ranges::sort(rows, {}, [](const auto& row) { return row[3]; });
  return rows;
}

}  // namespace

ForEachPassage passages_of_tsv(const std::string& path) {
  return [path](const std::function<void(const TextPassage&)>& body) {
    TsvReader reader(path);
    std::vector<std::string> fields;
    reader.next(fields);  // the names
    while (reader.next(fields)) {
      check(fields.size() >= 3, reader.place(), " has ", fields.size(),
            " fields, but passages have three: id, text, title");
      body({parsed_id(fields[0], reader.place()), std::move(fields[2]), std::move(fields[1])});
    }
  };
}

ForEachPassage passages_of_blocks(const BlockCorpus& options, const Tokenizer& tokenizer) {
  const auto corpus = std::make_shared<const IndexedCorpus>(options.data);
  const auto titles = std::make_shared<const IndexedCorpus>(options.titles);
  check(titles->num_sequences() >= corpus->num_documents(), "--titles-data-path ", options.titles,
        " has ", titles->num_sequences(), " titles for ", corpus->num_documents(),
        " documents: give one for each, in the same order");
  const auto rows = std::make_shared<const std::vector<BlockRow<std::uint64_t>>>(
      blocks_of(*corpus, *titles, options));
  return [=, &tokenizer](const std::function<void(const TextPassage&)>& body) {
    for (const auto& [first, end, document, block] : *rows) {
      const auto title = static_cast<std::int64_t>(document);
      body({static_cast<std::int64_t>(block), decoded(tokenizer, *titles, title, title + 1),
            decoded(tokenizer, *corpus, static_cast<std::int64_t>(first),
                    static_cast<std::int64_t>(end))});
    }
  };
}

}  // namespace bloomery
