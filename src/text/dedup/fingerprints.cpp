#include "text/dedup/fingerprints.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <compare>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "text/dedup/external_sort.h"
#include "text/dedup/removals.h"

namespace bloomery {
namespace {

void append_word(std::string& to, std::uint64_t word) {
  to.append(reinterpret_cast<const char*>(&word), sizeof word);
}

class MinHashFingerprinter : public LineTransform {
 public:
  explicit MinHashFingerprinter(const MinHashOptions& options) : minhash_(options) {}
  void apply(const LineChunk&, const DocumentLine& line, Transformed& out) override {
    const std::span<const std::uint64_t> signature = minhash_.signature(line.texts[0]);
    if (signature.empty()) return;
    minhash_.keys(signature, keys_);
    append_word(out.kept, line.number);
    for (const std::uint64_t key : keys_) append_word(out.kept, key);
  }

 private:
  MinHash minhash_;
  std::vector<std::uint64_t> keys_;
};

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

class ExactFingerprinter : public LineTransform {
 public:
  explicit ExactFingerprinter(bool by_paragraph) : by_paragraph_(by_paragraph) {}
  void apply(const LineChunk&, const DocumentLine& line, Transformed& out) override {
    if (!by_paragraph_) return add(line.number, Removal::kWhole, line.texts[0], out.kept);
    std::uint64_t part = 0;
    for (const std::string_view paragraph : paragraphs(line.texts[0])) {
      const std::string_view text = stripped(paragraph);
      if (!text.empty()) add(line.number, part, text, out.kept);
      ++part;
    }
  }

 private:
  static void add(std::uint64_t line, std::uint64_t part, std::string_view text, std::string& out) {
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    for (const std::uint64_t word : {line, part, hash.low64, hash.high64}) append_word(out, word);
  }
  const bool by_paragraph_;
};

// Calls with every record of `words` words, and the number of its document in all inputs.
template <class Visit>
void for_each_record(const Fingerprints& fingerprints, std::size_t words, const Visit& visit) {
  constexpr std::size_t kRecordsAtOnce = 4096;
  std::vector<std::uint64_t> block;
  for (std::size_t i = 0; i < fingerprints.files.size(); ++i) {
    const InputFile file(fingerprints.files[i]);
    const std::uint64_t bytes = words * sizeof(std::uint64_t), count = file.size() / bytes;
    for (std::uint64_t first = 0; first < count; first += kRecordsAtOnce) {
      block.resize(words * std::min<std::uint64_t>(kRecordsAtOnce, count - first));
      file.read(first * bytes, block.data(), block.size() * sizeof(std::uint64_t));
      for (std::size_t at = 0; at < block.size(); at += words) {
        visit(fingerprints.first_document[i] + block[at], &block[at + 1]);
      }
    }
  }
}

// Sets of documents; each is known by its first one.
class DocumentSets {
 public:
  explicit DocumentSets(std::uint64_t count) {
    check(count < UINT32_MAX, count, " documents at once are too many for MinHash; give parts of ",
          "the corpus");
    first_.resize(count);
    std::iota(first_.begin(), first_.end(), 0);
  }
  std::uint32_t first_of(std::uint64_t document) {
    auto at = static_cast<std::uint32_t>(document);
    while (first_[at] != at) at = first_[at] = first_[first_[at]];
    return at;
  }
  void join(std::uint64_t a, std::uint64_t b) {
    const std::uint32_t one = first_of(a), other = first_of(b);
    first_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<std::uint32_t> first_;
};

std::int64_t removals_by_minhash(const DedupOptions& options, const Fingerprints& fingerprints,
                                 const std::filesystem::path& folder, RemovalWriter& writer) {
  struct Entry {
    std::uint64_t key, document;
    auto operator<=>(const Entry&) const = default;
  };
  const auto buckets = static_cast<std::size_t>(options.minhash.num_buckets);
  ExternalSorter<Entry> sorter(folder, static_cast<std::size_t>(options.memory_bytes));
  for_each_record(fingerprints, 1 + buckets,
                  [&](std::uint64_t document, const std::uint64_t* keys) {
                    for (std::size_t i = 0; i < buckets; ++i) sorter.add({keys[i], document});
                  });
  const std::uint64_t count = fingerprints.first_document.back();
  DocumentSets sets(count);
  Entry before{0, UINT64_MAX};
  sorter.for_each_sorted([&](const Entry& entry) {
    if (before.document != UINT64_MAX && entry.key == before.key) {
      sets.join(before.document, entry.document);
    }
    before = entry;
  });
  std::vector<bool> has_duplicates(count);
  std::int64_t groups = 0;
  for (std::uint64_t document = 0; document < count; ++document) {
    const std::uint32_t first = sets.first_of(document);
    if (first == document) continue;
    writer.add({.document = document, .duplicate_of = first});
    groups += has_duplicates[first] ? 0 : 1;
    has_duplicates[first] = true;
  }
  return groups;
}

std::int64_t removals_of_equals(const DedupOptions& options, const Fingerprints& fingerprints,
                                const std::filesystem::path& folder, RemovalWriter& writer) {
  struct Entry {
    std::uint64_t high, low, document, part;
    auto operator<=>(const Entry&) const = default;
    bool same(const Entry& other) const { return high == other.high && low == other.low; }
  };
  const auto memory = static_cast<std::size_t>(options.memory_bytes) / 2;
  ExternalSorter<Entry> sorter(folder, memory);
  for_each_record(fingerprints, 4, [&](std::uint64_t document, const std::uint64_t* words) {
    sorter.add({words[2], words[1], document, words[0]});
  });
  ExternalSorter<Removal> removals(folder, memory);
  Entry first{0, 0, UINT64_MAX, 0};  // of the group at hand
  bool alone = true;
  std::int64_t groups = 0;
  sorter.for_each_sorted([&](const Entry& entry) {
    if (first.document == UINT64_MAX || !entry.same(first)) {
      first = entry;
      alone = true;
      return;
    }
    groups += alone ? 1 : 0;
    alone = false;
    removals.add({entry.document, entry.part, first.document});
  });
  removals.for_each_sorted([&](const Removal& removal) { writer.add(removal); });
  return groups;
}

}  // namespace

std::vector<std::string_view> paragraphs(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return found;
    begin = end + 1;
  }
}

std::unique_ptr<LineTransform> make_fingerprinter(const DedupOptions& options) {
  if (options.method == DedupMethod::minhash) {
    return std::make_unique<MinHashFingerprinter>(options.minhash);
  }
  return std::make_unique<ExactFingerprinter>(options.method == DedupMethod::paragraphs);
}

std::int64_t find_removals(const DedupOptions& options, const Fingerprints& fingerprints,
                           const std::filesystem::path& folder,
                           const std::filesystem::path& removals) {
  RemovalWriter writer(removals);
  const std::int64_t groups = options.method == DedupMethod::minhash
                                  ? removals_by_minhash(options, fingerprints, folder, writer)
                                  : removals_of_equals(options, fingerprints, folder, writer);
  writer.commit();
  return groups;
}

}  // namespace bloomery
