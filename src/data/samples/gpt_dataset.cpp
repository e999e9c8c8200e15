#include "data/samples/gpt_dataset.h"

#include "base/error.h"

namespace bloomery {
namespace {

std::vector<std::int32_t> lengths_of(const IndexedCorpus& corpus, const SplitRange& documents) {
  std::vector<std::int32_t> lengths(documents.size());
  for (std::int64_t i = 0; i < documents.size(); ++i) {
    lengths[i] = corpus.length(documents.first + i);
  }
  corpus.release_index();
  return lengths;
}

// Sequences lie one after another in a corpus whose lengths add up, so that the tokens of a range
// are the difference of two places.
std::int64_t tokens_of(const IndexedCorpus& corpus, const SplitRange& documents) {
  return corpus.first_token(documents.last) - corpus.first_token(documents.first);
}

}  // namespace

GptDataset::GptDataset(std::shared_ptr<const IndexedCorpus> corpus, const SplitRange& documents,
                       const GptDatasetOptions& options, const Log& log)
    : corpus_(std::move(corpus)), documents_(documents) {
  check(documents.size() > 0, "the ", name(options.split), " split of ", options.prefix,
        " has no documents; change --split '", options.split_text, "'");
  const std::int64_t tokens = tokens_of(*corpus_, documents);
  check(tokens > 0, "the ", documents.size(), " documents of the ", name(options.split),
        " split of ", options.prefix, " have no tokens");
  plan_ = plan_gpt_index(tokens, options.seq_length, options.num_samples, options.exact_epochs);
  const GptIndexKey key{options.prefix,    name(options.split), options.num_samples,
                        plan_.num_epochs,  options.seq_length,  options.seed,
                        options.split_text};
  description_ = key.description();
  index_ = open_gpt_index(
      key, documents_, plan_, [&] { return lengths_of(*corpus_, documents_); },
      options.cache_folder, log);
}

void GptDataset::read(std::int64_t k, std::span<TokenId> out) const {
  check(k >= 0 && k < size(), "sample ", k, " of ", size(), " of ", corpus_->prefix().string(),
        " was asked for");
  check(static_cast<std::int64_t>(out.size()) == num_tokens(), "a sample has ", num_tokens(),
        " tokens, not ", out.size());
  const std::int64_t row = index_->row(k);
  check(row >= 0 && row < size(), index_->path().string(), ": no row ", row,
        "; the cached index is damaged: remove it");
  auto [position, offset] = index_->start(row);
  const std::span<const std::int32_t> order = index_->documents();
  for (; !out.empty(); ++position, offset = 0) {
    check(position >= 0 && position < static_cast<std::int64_t>(order.size()),
          index_->path().string(), ": row ", row,
          " leads past the last document; the cached index is damaged: remove it");
    const std::int32_t document = order[position];
    check(document >= documents_.first && document < documents_.last && offset >= 0 &&
              offset <= corpus_->length(document),
          index_->path().string(), ": row ", row, " names token ", offset, " of document ",
          document, "; the cached index is damaged: remove it");
    const std::size_t count = std::min<std::size_t>(out.size(), corpus_->length(document) - offset);
    corpus_->read(document, offset, out.first(count));
    out = out.subspan(count);
  }
}

}  // namespace bloomery
