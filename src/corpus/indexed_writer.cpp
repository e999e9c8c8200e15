#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "corpus/indexed_corpus.h"
#include "corpus/writer_files.h"

namespace bloomery {
namespace {

constexpr std::size_t kCopyBytes = 4 << 20;   // of another corpus at a time
constexpr std::int64_t kIndexStep = 1 << 20;  // sequences or documents of it at a time

// Runs an action that writes. When it finds the disk full, tells what the whole corpus needs.
template <class Body>
void writing(const CorpusFiles& files, const Body& body) {
  try {
    body();
  } catch (const DiskFull&) {
    throw std::runtime_error(concat("no space left for ", files.prefix().string(),
                                    ": its .bin and .idx need at least ", files.bytes_needed(),
                                    " bytes, ", files.bytes_available(),
                                    " are free; make room or choose another output"));
  }
}

}  // namespace

struct IndexedWriter::Impl {
  Impl(const std::filesystem::path& prefix, TokenType token_type, CorpusFormat format)
      : type(token_type), files(prefix, token_type, format) {}

  TokenType type;
  CorpusFiles files;
  std::int64_t tokens = 0, sequences = 0, documents = 0;
  std::int64_t open_sequences = 0;  // of the document that end_document() has not closed yet
  std::vector<std::byte> scratch;

  void add_lengths(std::span<const std::int32_t> lengths) {
    files.lengths().write(std::as_bytes(lengths));
    tokens = std::accumulate(lengths.begin(), lengths.end(), tokens);
    sequences += static_cast<std::int64_t>(lengths.size());
  }

  void add_document(std::int64_t num_sequences) {
    marked += num_sequences;
    ++documents;
    files.marks().write(std::as_bytes(std::span(&marked, 1)));
  }

  void copy_tokens(const IndexedCorpus& corpus, std::int64_t first, std::int64_t last);

 private:
  std::int64_t marked = 0;  // sequences of closed documents
};

void IndexedWriter::Impl::copy_tokens(const IndexedCorpus& corpus, std::int64_t first,
                                      std::int64_t last) {
  const std::size_t size = size_of(type);
  const auto step = static_cast<std::int64_t>(kCopyBytes / 8);
  std::vector<TokenId> ids;
  for (std::int64_t at = first; at < last; at += step) {
    const auto count = static_cast<std::size_t>(std::min(step, last - at));
    scratch.resize(count * size);
    if (corpus.type() == type) {
      corpus.read_bin_bytes(at, scratch);
    } else {
      ids.resize(count);
      corpus.read_bin(at, ids);
      encode_tokens(type, ids, scratch);
    }
    files.tokens().write(scratch);
  }
}

IndexedWriter::IndexedWriter(const std::filesystem::path& prefix, TokenType type,
                             CorpusFormat format)
    : impl_(std::make_unique<Impl>(prefix, type, format)) {}
IndexedWriter::~IndexedWriter() = default;

std::int64_t IndexedWriter::num_tokens() const { return impl_->tokens; }
std::int64_t IndexedWriter::num_sequences() const { return impl_->sequences; }
std::int64_t IndexedWriter::num_documents() const { return impl_->documents; }

void IndexedWriter::append(const EncodedBatch& batch) {
  assert(impl_->open_sequences == 0);
  assert(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::size_t{0}) *
             size_of(impl_->type) ==
         batch.tokens.size());
  assert(std::accumulate(batch.document_sequences.begin(), batch.document_sequences.end(),
                         std::size_t{0}) == batch.lengths.size());
  writing(impl_->files, [&] {
    impl_->files.tokens().write(batch.tokens);
    impl_->add_lengths(batch.lengths);
    for (const std::int64_t sequences : batch.document_sequences) {
      impl_->add_document(sequences);
    }
  });
}

void IndexedWriter::add_sequence(std::span<const TokenId> tokens) {
  check(std::in_range<std::int32_t>(tokens.size()), "a sequence of ", tokens.size(),
        " tokens is longer than the format allows, 2147483647; split it");
  impl_->scratch.resize(tokens.size() * size_of(impl_->type));
  encode_tokens(impl_->type, tokens, impl_->scratch);
  const auto length = static_cast<std::int32_t>(tokens.size());
  writing(impl_->files, [&] {
    impl_->files.tokens().write(impl_->scratch);
    impl_->add_lengths({&length, 1});
  });
  ++impl_->open_sequences;
}

void IndexedWriter::end_document() {
  writing(impl_->files, [&] { impl_->add_document(impl_->open_sequences); });
  impl_->open_sequences = 0;
}

void IndexedWriter::append(const IndexedCorpus& corpus, std::int64_t first, std::int64_t last) {
  assert(impl_->open_sequences == 0);
  assert(first >= 0 && first <= last && last <= corpus.num_documents());
  const std::int64_t begin = corpus.first_sequence(first), end = corpus.first_sequence(last);
  writing(impl_->files, [&] {
    impl_->copy_tokens(corpus, corpus.first_token(begin), corpus.first_token(end));
    for (std::int64_t i = begin; i < end; i += kIndexStep) {
      impl_->add_lengths(corpus.lengths(i, std::min(end, i + kIndexStep)));
    }
    for (std::int64_t i = first; i < last; i += kIndexStep) {
      const auto marks = corpus.first_sequences(i, std::min(last, i + kIndexStep) + 1);
      for (std::size_t k = 1; k < marks.size(); ++k) {
        impl_->add_document(marks[k] - marks[k - 1]);
      }
    }
  });
}

void IndexedWriter::append(const IndexedCorpus& corpus) {
  append(corpus, 0, corpus.num_documents());
}

void IndexedWriter::set_tokenizer(CorpusTokenizer tokenizer) {
  impl_->files.set_tokenizer(std::move(tokenizer));
}

void IndexedWriter::commit() {
  assert(impl_->open_sequences == 0);
  writing(impl_->files,
          [&] { impl_->files.commit(impl_->sequences, impl_->documents, impl_->tokens); });
}

}  // namespace bloomery
