#include "data/indexed_corpus.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.h"
#include "base/file.h"
#include "data/index_file.h"

namespace bloomery {

const char* name(CorpusFormat format) {
  switch (format) {
    case CorpusFormat::mmap:
      return "mmap";
    case CorpusFormat::cached:
      return "cached";
    case CorpusFormat::lazy:
      break;
  }
  return "lazy";
}

std::filesystem::path bin_path(const std::filesystem::path& prefix) {
  std::filesystem::path path = prefix;
  return path += ".bin";
}

std::filesystem::path idx_path(const std::filesystem::path& prefix) {
  std::filesystem::path path = prefix;
  return path += ".idx";
}

struct IndexedCorpus::Impl {
  explicit Impl(const std::filesystem::path& given)
      : prefix(given),
        idx(idx_path(given)),
        bin(bin_path(given)),
        index(idx.bytes(), idx.path().string()),
        totals(index.check_arrays(
            bin.size(), [&](std::size_t begin, std::size_t end) { idx.release(begin, end); })),
        bin_tokens(static_cast<std::int64_t>(bin.size() / size_of(index.type()))) {}

  std::filesystem::path prefix;
  MappedFile idx;
  InputFile bin;
  IndexView index;
  IndexView::Totals totals;
  std::int64_t bin_tokens;
};

IndexedCorpus::IndexedCorpus(const std::filesystem::path& prefix)
    : impl_(std::make_unique<Impl>(prefix)) {}
IndexedCorpus::~IndexedCorpus() = default;
IndexedCorpus::IndexedCorpus(IndexedCorpus&&) noexcept = default;
IndexedCorpus& IndexedCorpus::operator=(IndexedCorpus&&) noexcept = default;

const std::filesystem::path& IndexedCorpus::prefix() const { return impl_->prefix; }
CorpusFormat IndexedCorpus::format() const { return impl_->index.format(); }
TokenType IndexedCorpus::type() const { return impl_->index.type(); }
std::int64_t IndexedCorpus::num_sequences() const { return impl_->index.num_sequences(); }
std::int64_t IndexedCorpus::num_documents() const { return impl_->index.num_marks() - 1; }
std::int64_t IndexedCorpus::num_empty_documents() const { return impl_->totals.empty_documents; }
std::int64_t IndexedCorpus::num_tokens() const { return impl_->totals.tokens; }

std::int64_t IndexedCorpus::num_uncounted_tokens() const {
  return impl_->bin_tokens - impl_->totals.tokens;
}

std::int32_t IndexedCorpus::length(std::int64_t sequence) const {
  assert(sequence >= 0 && sequence < num_sequences());
  return static_cast<std::int32_t>(impl_->index.length(sequence));
}

std::int64_t IndexedCorpus::first_token(std::int64_t sequence) const {
  assert(sequence >= 0 && sequence <= num_sequences());
  return sequence == num_sequences() ? num_tokens() : impl_->index.first_token(sequence);
}

std::int64_t IndexedCorpus::first_sequence(std::int64_t document) const {
  assert(document >= 0 && document <= num_documents());
  return impl_->index.mark(document);
}

void IndexedCorpus::release_index() const { impl_->idx.release(0, impl_->idx.bytes().size()); }

void IndexedCorpus::read(std::int64_t sequence, std::int64_t offset, std::span<TokenId> out) const {
  check(offset >= 0 && static_cast<std::int64_t>(out.size()) <= length(sequence) - offset,
        impl_->bin.path().string(), ": sequence ", sequence, " has ", length(sequence), " tokens; ",
        out.size(), " from ", offset, " on were asked for");
  read_bin(first_token(sequence) + offset, out);
}

void IndexedCorpus::read_bin(std::int64_t first, std::span<TokenId> out) const {
  if (type() == TokenType::i32) {
    return read_bin_bytes(first, std::as_writable_bytes(out));
  }
  std::array<std::byte, 1 << 15> buffer;
  const std::size_t size = size_of(type()), step = buffer.size() / size;
  for (std::size_t at = 0; at < out.size(); at += step) {
    const std::size_t count = std::min(step, out.size() - at);
    const std::span<std::byte> stored(buffer.data(), count * size);
    read_bin_bytes(first + static_cast<std::int64_t>(at), stored);
    decode_tokens(type(), stored, out.subspan(at, count));
  }
}

void IndexedCorpus::read_bin_bytes(std::int64_t first, std::span<std::byte> out) const {
  const std::size_t size = size_of(type());
  const auto count = static_cast<std::int64_t>(out.size() / size);
  check(first >= 0 && count <= impl_->bin_tokens - first, impl_->bin.path().string(), " has ",
        impl_->bin_tokens, " tokens; ", count, " from ", first, " on were asked for");
  impl_->bin.read(static_cast<std::uint64_t>(first) * size, out.data(), out.size());
}

}  // namespace bloomery
