#include "corpus/indexed_corpus.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "corpus/corpus_name.h"
#include "corpus/index_file.h"

namespace bloomery {
namespace {

constexpr std::int64_t kEntriesAtOnce = 1 << 18;

}  // namespace

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
        index([this](std::uint64_t offset, void* to,
                     std::size_t size) { idx.read(offset, to, size); },
              idx.size(), idx.path().string()),
        totals(index.check_arrays(bin.size())),
        bin_tokens(static_cast<std::int64_t>(bin.size() / size_of(index.type()))) {}

  std::filesystem::path prefix;
  InputFile idx, bin;
  IndexArrays index;
  IndexArrays::Totals totals;
  std::int64_t bin_tokens;
};

IndexedCorpus::IndexedCorpus(const std::filesystem::path& prefix) {
  const std::string why = why_no_corpus(prefix);
  check(why.empty(), why);
  impl_ = std::make_unique<Impl>(prefix);
}
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

// A hash of the hashes of blocks.
std::string IndexedCorpus::fingerprint() const {
  constexpr std::uint64_t kBlock = 4 << 20;
  const InputFile& idx = impl_->idx;
  std::vector<std::byte> block;
  std::string hashes;
  for (std::uint64_t at = 0; at < idx.size(); at += kBlock) {
    block.resize(std::min(kBlock, idx.size() - at));
    idx.read(at, block.data(), block.size());
    hashes += hash_text(xxh3(std::span<const std::byte>(block)));
  }
  return concat("idx ", idx.size(), " bytes, XXH3 ", hash_text(xxh3(hashes)), "; bin ",
                impl_->bin.size(), " bytes");
}

std::int64_t IndexedCorpus::num_uncounted_tokens() const {
  return impl_->bin_tokens - impl_->totals.tokens;
}

SequencePlace IndexedCorpus::place(std::int64_t sequence) const {
  assert(sequence >= 0 && sequence < num_sequences());
  return impl_->index.place(sequence);
}

std::int32_t IndexedCorpus::length(std::int64_t sequence) const {
  return static_cast<std::int32_t>(place(sequence).length);
}

std::int64_t IndexedCorpus::first_token(std::int64_t sequence) const {
  assert(sequence >= 0 && sequence <= num_sequences());
  return sequence == num_sequences() ? num_tokens() : place(sequence).first_token;
}

std::int64_t IndexedCorpus::first_sequence(std::int64_t document) const {
  assert(document >= 0 && document <= num_documents());
  return impl_->index.marks(document, document + 1)[0];
}

std::vector<std::int32_t> IndexedCorpus::lengths(std::int64_t first, std::int64_t last) const {
  assert(first >= 0 && first <= last && last <= num_sequences());
  std::vector<std::int32_t> all(static_cast<std::size_t>(last - first));
  for (std::int64_t begin = first; begin < last; begin += kEntriesAtOnce) {
    const auto part = impl_->index.lengths(begin, std::min(last, begin + kEntriesAtOnce));
    std::ranges::transform(part, all.begin() + (begin - first),
                           [](std::int64_t length) { return static_cast<std::int32_t>(length); });
  }
  return all;
}

std::vector<std::int64_t> IndexedCorpus::first_sequences(std::int64_t first,
                                                         std::int64_t last) const {
  assert(first >= 0 && first <= last && last <= num_documents() + 1);
  return impl_->index.marks(first, last);
}

std::vector<std::int64_t> IndexedCorpus::first_tokens(std::int64_t first, std::int64_t last) const {
  assert(first >= 0 && first <= last && last <= num_sequences() + 1);
  std::vector<std::int64_t> all = impl_->index.offsets(first, std::min(last, num_sequences()));
  const auto unit = static_cast<std::int64_t>(format() == CorpusFormat::mmap ? size_of(type()) : 1);
  for (std::int64_t& offset : all) {
    offset /= unit;
  }
  if (last > num_sequences()) {
    all.push_back(num_tokens());
  }
  return all;
}

void IndexedCorpus::read(std::int64_t sequence, std::int64_t offset, std::span<TokenId> out) const {
  const SequencePlace place = this->place(sequence);
  check(offset >= 0 && static_cast<std::int64_t>(out.size()) <= place.length - offset,
        impl_->bin.path().string(), ": sequence ", sequence, " has ", place.length, " tokens; ",
        out.size(), " from ", offset, " on were asked for");
  read_bin(place.first_token + offset, out);
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
