#include "samples/gpt_dataset.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace bloomery {
namespace {

// Sequences lie one after another in a corpus whose lengths add up, so that the tokens of a range
// are the difference of two places.
std::int64_t tokens_of(const IndexedCorpus& corpus, const SplitRange& documents) {
  return corpus.first_token(documents.last) - corpus.first_token(documents.first);
}

}  // namespace

GptDataset::GptDataset(std::shared_ptr<const IndexedCorpus> corpus, const SplitRange& documents,
                       const CorpusRequest& request, std::int64_t seq_length, std::int64_t seed,
                       const Log& log)
    : corpus_(std::move(corpus)),
      documents_(documents),
      fields_{{"tokens", DType::int32, {seq_length + 1}}} {
  check(documents.size() > 0, "the ", name(request.split), " split of ", request.prefix,
        " has no documents; change --split '", request.split_text, "'");
  const std::int64_t tokens = tokens_of(*corpus_, documents);
  check(tokens > 0, "the ", documents.size(), " documents of the ", name(request.split),
        " split of ", request.prefix, " have no tokens");
  if (const std::string line = short_split(request.prefix, request.split, tokens, seq_length);
      !line.empty()) {
    log.warning(line);
  }
  const GptIndexPlan plan =
      plan_gpt_index(tokens, seq_length, request.num_samples, request.exact_epochs);
  const GptIndexKey key{request.prefix,    name(request.split), request.num_samples,
                        plan.num_epochs,   seq_length,          seed,
                        request.split_text};
  description_ = key.description();
  index_ = open_gpt_index(key, *corpus_, documents_, plan, request.cache_folder, log);
}

void GptDataset::read(std::int64_t k, const Sample& sample) const {
  check(k >= 0 && k < size(), "sample ", k, " of ", size(), " of ", corpus_->prefix().string(),
        " was asked for");
  std::span<TokenId> out = sample.array<TokenId>("tokens");
  const std::int64_t row = index_->row(k);
  check(row >= 0 && row < size(), index_->path().string(), ": no row ", row,
        "; the cached index is damaged: remove it");
  auto [position, offset] = index_->start(row);
  std::array<std::int32_t, 64> documents;
  for (std::size_t next = documents.size(); !out.empty(); ++position, ++next, offset = 0) {
    if (next == documents.size()) {
      next -= index_->read_documents(position, documents);
    }
    check(next < documents.size(), index_->path().string(), ": row ", row,
          " leads past the last document; the cached index is damaged: remove it");
    const std::int32_t document = documents[next];
    check(document >= documents_.first && document < documents_.last, index_->path().string(),
          ": row ", row, " names document ", document, "; the cached index is damaged: remove it");
    const SequencePlace place = corpus_->place(document);
    check(offset >= 0 && offset <= place.length, index_->path().string(), ": row ", row,
          " names token ", offset, " of document ", document,
          "; the cached index is damaged: remove it");
    const auto count = std::min(out.size(), static_cast<std::size_t>(place.length - offset));
    corpus_->read_bin(place.first_token + offset, out.first(count));
    out = out.subspan(count);
  }
}

MakeDataset gpt_samples(std::int64_t seq_length, std::int64_t seed) {
  return [=](std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
             const Log& log) -> std::unique_ptr<Dataset> {
    const SplitRange documents = request.range(corpus->num_sequences());
    if (documents.size() == 0) {
      return nullptr;
    }
    return std::make_unique<GptDataset>(std::move(corpus), documents, request, seq_length, seed,
                                        log);
  };
}

}  // namespace bloomery
