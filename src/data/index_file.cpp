#include "data/index_file.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kVersion = 1;
// Sequences or documents that one thread checks at a time: what it touches stays in its cache, and
// what all threads touch at once stays small.
constexpr std::int64_t kGrain = 1 << 17;

bool starts_with(std::span<const std::byte> bytes, const char* magic, std::size_t size) {
  return bytes.size() >= size && std::memcmp(bytes.data(), magic, size) == 0;
}

}  // namespace

IndexView::IndexView(std::span<const std::byte> bytes, std::string path)
    : bytes_(bytes), path_(std::move(path)) {
  if (starts_with(bytes, kMmapMagic, sizeof kMmapMagic)) {
    read_mmap_header();
  } else if (starts_with(bytes, kTntMagic, sizeof kTntMagic)) {
    read_tnt_header();
  } else {
    throw Error(concat(path_, " is not the index of a corpus: it starts with neither MMIDIDX nor ",
                       "TNTIDX", bytes.empty() ? " (it is empty)" : ""));
  }
}

// Takes the counts of a header after checking that the arrays they announce fill the file exactly.
void IndexView::set_counts(std::uint64_t sequences, std::uint64_t marks, std::uint64_t header,
                           std::uint64_t per_sequence, std::uint64_t further) {
  const std::uint64_t size = bytes_.size();
  const bool possible = sequences <= size / per_sequence && marks <= size / 8;
  const std::uint64_t wanted = header + sequences * per_sequence + marks * 8 + further;
  check(possible && wanted <= size, path_, " is cut short: its header announces ", sequences,
        " sequences and ", marks, " document marks, ",
        possible ? concat(wanted, " bytes in all, ") : "", "but the file has only ", size,
        " bytes");
  check(wanted == size || format_ != CorpusFormat::mmap || size - wanted != sequences, path_,
        " has one byte more for each sequence: the modes of a multimodal corpus, which are not "
        "supported");
  check(wanted == size, path_, " has ", size, " bytes, but its header announces ", sequences,
        " sequences and ", marks, " document marks, ", wanted, " bytes in all");
  check(marks >= 1, path_, " has no document marks; even an empty corpus has one, which is 0");
  num_sequences_ = static_cast<std::int64_t>(sequences);
  num_marks_ = static_cast<std::int64_t>(marks);
}

void IndexView::read_mmap_header() {
  check(bytes_.size() >= kMmapHeader, path_, " is cut short: ", bytes_.size(),
        " bytes do not hold the header of ", kMmapHeader);
  const std::byte* at = bytes_.data();
  const auto version = load_value<std::uint64_t>(at + 9);
  check(version == kVersion, path_, " has version ", version, "; only version 1 is known");
  const auto code = load_value<std::uint8_t>(at + 17);
  const auto type = token_type_of_code(code);
  check(type.has_value(), path_, " has the unknown token type ", int{code}, "; 1 to 8 are known");
  format_ = CorpusFormat::mmap;
  type_ = *type;
  set_counts(load_value<std::uint64_t>(at + 18), load_value<std::uint64_t>(at + 26), kMmapHeader,
             12, 0);
  lengths_ = at + kMmapHeader;
  offsets_ = lengths_ + num_sequences_ * 4;
  marks_ = offsets_ + num_sequences_ * 8;
}

void IndexView::read_tnt_header() {
  check(bytes_.size() >= kTntHeader, path_, " is cut short: ", bytes_.size(),
        " bytes do not hold the header of ", kTntHeader);
  const std::byte* at = bytes_.data();
  const auto field = [&](int i) { return load_value<std::uint64_t>(at + 8 * i); };
  check(field(1) == kVersion, path_, " has version ", field(1), "; only version 1 is known");
  auto type = token_type_of_code(field(2));
  check(type.has_value(), path_, " has the unknown token type ", field(2), "; 1 to 8 are known");
  // Old releases gave the two floating-point codes the other way round; the size tells.
  if (field(2) == 6 && field(3) == 4) {
    type = TokenType::f32;
  } else if (field(2) == 7 && field(3) == 8) {
    type = TokenType::f64;
  }
  format_ = CorpusFormat::cached;
  type_ = *type;
  check(field(3) == size_of(type_), path_, " gives its tokens ", field(3), " bytes, but ",
        name(type_), " has ", size_of(type_));
  check(field(4) == field(5), path_, " holds ", field(4), " items of ", field(5),
        " dimensions in all; only sequences, of one dimension each, are supported");
  set_counts(field(4), field(6), kTntHeader, 24, 16);
  dimensions_ = at + kTntHeader;
  offsets_ = dimensions_ + (num_sequences_ + 1) * 8;
  lengths_ = offsets_ + (num_sequences_ + 1) * 8;
  marks_ = lengths_ + num_sequences_ * 8;
}

void IndexView::check_sequences(std::int64_t begin, std::int64_t end,
                                std::uint64_t bin_bytes) const {
  const auto unit = static_cast<std::int64_t>(is_mmap() ? size_of(type_) : 1);
  const auto room = static_cast<std::int64_t>(bin_bytes / (is_mmap() ? 1 : size_of(type_)));
  const char* const unit_name = is_mmap() ? " bytes" : " tokens";
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t length = this->length(i), start = offset(i);
    check(length >= 0 && length <= std::numeric_limits<std::int32_t>::max(), path_, ": sequence ",
          i, " has length ", length);
    check(start >= 0 && start <= room && length <= (room - start) / unit, path_, ": sequence ", i,
          " lies at", unit_name, " ", start, " to ", start, " + ", length, " x ", unit,
          ", but the .bin has ", room, unit_name,
          ": it is shorter than the index says, or of another corpus");
    if (i + 1 < num_sequences_ || !is_mmap()) {
      const std::int64_t next = offset(i + 1);
      check(next == start + length * unit, path_, ": sequence ", i + 1, " starts at", unit_name,
            " ", next, ", not where sequence ", i, " ends, at ", start + length * unit);
    }
    check(is_mmap() || load_value<std::int64_t>(dimensions_ + 8 * i) == i, path_, ": item ", i,
          " is not a sequence, of one dimension");
  }
}

// The number of documents without sequences in [begin, end).
std::int64_t IndexView::check_documents(std::int64_t begin, std::int64_t end) const {
  std::int64_t empty = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t first = mark(i), next = mark(i + 1);
    check(first <= next, path_, ": document ", i, " starts at sequence ", first, " and document ",
          i + 1, " at ", next, "; document marks must not descend");
    empty += first == next ? 1 : 0;
  }
  return empty;
}

IndexView::Totals IndexView::check_arrays(std::uint64_t bin_bytes, const Release& release) const {
  const std::int64_t documents = num_marks_ - 1;
  check(mark(0) == 0, path_, ": the first document starts at sequence ", mark(0), " instead of 0");
  check(mark(documents) == num_sequences_, path_, ": the last document ends at sequence ",
        mark(documents), ", but there are ", num_sequences_);
  check(num_sequences_ == 0 || offset(0) == 0, path_, ": the first sequence starts at ",
        num_sequences_ == 0 ? 0 : offset(0), " of the .bin instead of 0");
  check(bin_bytes % size_of(type_) == 0, path_, ": the .bin has ", bin_bytes,
        " bytes, which is no whole number of tokens of type ", name(type_));

  const std::int64_t work = std::max(num_sequences_, documents);
  ThreadPool pool(work > 4 * kGrain ? 0 : 1);
  const auto place = [&](const std::byte* array, std::int64_t index, int size) {
    return static_cast<std::size_t>(array - bytes_.data() + index * size);
  };
  const int length_size = is_mmap() ? 4 : 8;
  pool.for_ranges(num_sequences_, kGrain, [&](std::int64_t begin, std::int64_t end) {
    check_sequences(begin, end, bin_bytes);
    release(place(lengths_, begin, length_size), place(lengths_, end, length_size));
    release(place(offsets_, begin, 8), place(offsets_, end, 8));
    if (!is_mmap()) {
      release(place(dimensions_, begin, 8), place(dimensions_, end, 8));
    }
  });
  std::atomic<std::int64_t> empty = 0;
  pool.for_ranges(documents, kGrain, [&](std::int64_t begin, std::int64_t end) {
    empty += check_documents(begin, end);
    release(place(marks_, begin, 8), place(marks_, end, 8));
  });
  Totals totals{.empty_documents = empty};
  if (num_sequences_ > 0) {
    totals.tokens = first_token(num_sequences_ - 1) + length(num_sequences_ - 1);
  }
  return totals;
}

}  // namespace bloomery
