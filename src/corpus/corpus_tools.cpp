#include "corpus/corpus_tools.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> pairs_of(const fs::path& folder) {
  std::set<std::string> bins, indices;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (entry.is_regular_file() && path.extension() == ".bin") {
      bins.insert(path.stem().string());
    } else if (entry.is_regular_file() && path.extension() == ".idx") {
      indices.insert(path.stem().string());
    }
  }
  std::set<std::string> single;
  std::ranges::set_symmetric_difference(bins, indices, std::inserter(single, single.end()));
  for (const std::string& stem : single) {
    throw Error(concat(folder.string(), " has only one of ", stem, ".bin and ", stem,
                       ".idx; complete the pair or remove it"));
  }
  check(!bins.empty(), folder.string(), " has no corpora: no pair of .bin and .idx");
  std::vector<fs::path> prefixes;
  for (const std::string& stem : bins) {
    prefixes.push_back(folder / stem);
  }
  return prefixes;
}

// Calls body(first sequence, lengths of the sequences) for every document.
template <class Body>
void for_each_document(const IndexedCorpus& corpus, const Body& body) {
  constexpr std::int64_t kDocumentsAtOnce = 1 << 16;
  for (std::int64_t d = 0; d < corpus.num_documents(); d += kDocumentsAtOnce) {
    const auto marks =
        corpus.first_sequences(d, std::min(corpus.num_documents(), d + kDocumentsAtOnce) + 1);
    const std::vector<std::int32_t> lengths = corpus.lengths(marks.front(), marks.back());
    for (std::size_t k = 1; k < marks.size(); ++k) {
      body(marks[k - 1],
           std::span(lengths).subspan(marks[k - 1] - marks.front(), marks[k] - marks[k - 1]));
    }
  }
}

}  // namespace

std::vector<fs::path> corpus_prefixes(const std::vector<std::string>& words) {
  std::vector<fs::path> prefixes;
  for (const std::string& word : words) {
    const fs::path path(word);
    const bool names_file = path.extension() == ".bin" || path.extension() == ".idx";
    if (fs::exists(idx_path(path))) {
      prefixes.push_back(path);
    } else if (fs::is_directory(path)) {
      std::ranges::copy(pairs_of(path), std::back_inserter(prefixes));
    } else {
      prefixes.push_back(names_file ? path.parent_path() / path.stem() : path);
    }
  }
  return prefixes;
}

TokenType common_type(const std::vector<IndexedCorpus>& corpora) {
  const bool same = std::ranges::all_of(
      corpora, [&](const IndexedCorpus& corpus) { return corpus.type() == corpora[0].type(); });
  return same && !corpora.empty() ? corpora[0].type() : TokenType::i32;
}

void append_counting_eod(IndexedWriter& writer, TokenType type, const IndexedCorpus& corpus) {
  constexpr std::int64_t kTokensAtOnce = 1 << 20;
  EncodedBatch batch;
  std::vector<TokenId> ids;
  std::int64_t next = 0, pending = 0;  // tokens of the .bin before the batch, and in it
  const auto flush = [&] {
    ids.resize(static_cast<std::size_t>(pending));
    corpus.read_bin(next, ids);
    batch.tokens.resize(ids.size() * size_of(type));
    encode_tokens(type, ids, batch.tokens);
    writer.append(batch);
    batch = {};
    next += pending;
    pending = 0;
  };
  for_each_document(corpus, [&](std::int64_t begin, std::span<const std::int32_t> lengths) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::int64_t length = std::int64_t{lengths[i]} + (i + 1 == lengths.size() ? 1 : 0);
      check(length <= std::numeric_limits<std::int32_t>::max(), corpus.prefix().string(),
            ": sequence ", begin + static_cast<std::int64_t>(i), " is too long for one more token");
      batch.lengths.push_back(static_cast<std::int32_t>(length));
      pending += length;
    }
    batch.document_sequences.push_back(static_cast<std::int64_t>(lengths.size()));
    if (pending >= kTokensAtOnce) {
      flush();
    }
  });
  flush();
}

std::vector<std::int64_t> equal_parts(const IndexedCorpus& corpus, std::int64_t parts) {
  check(parts <= std::max<std::int64_t>(corpus.num_documents(), 1), corpus.prefix().string(),
        " has ", corpus.num_documents(), " documents, too few for ", parts, " parts");
  std::vector<std::int64_t> borders{0};
  const std::int64_t documents = corpus.num_documents(), tokens = corpus.num_tokens();
  for (std::int64_t part = 1; part < parts; ++part) {
    // The first document that starts at or after the share of the parts so far, but so that no part
    // is empty.
    const std::int64_t share = tokens / parts * part + tokens % parts * part / parts;
    std::int64_t low = borders.back() + 1, high = documents - (parts - part);
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (corpus.first_token(corpus.first_sequence(middle)) < share) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    borders.push_back(low);
  }
  borders.push_back(documents);
  return borders;
}

}  // namespace bloomery
