#include "corpus/index_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kVersion = 1;
// Sequences or documents that one thread checks at a time: what it touches stays in its cache, and
// what all threads touch at once stays small.
constexpr std::int64_t kGrain = 1 << 17;

// A value at any alignment. The files are little endian, as is every machine this runs on.
template <class T>
T load_value(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

bool starts_with(const std::vector<std::byte>& bytes, const char* magic, std::size_t size) {
  return bytes.size() >= size && std::memcmp(bytes.data(), magic, size) == 0;
}

}  // namespace

IndexArrays::IndexArrays(ReadIndex read, std::uint64_t size, std::string path)
    : read_(std::move(read)), size_(size), path_(std::move(path)) {
  const auto head = this->read<std::byte>(
      0, static_cast<std::int64_t>(std::min<std::uint64_t>(size_, kTntHeader)));
  if (starts_with(head, kMmapMagic, sizeof kMmapMagic)) {
    read_mmap_header(head);
  } else if (starts_with(head, kTntMagic, sizeof kTntMagic)) {
    read_tnt_header(head);
  } else {
    throw Error(concat(path_, " is not the index of a corpus: it starts with neither MMIDIDX nor ",
                       "TNTIDX", size_ == 0 ? " (it is empty)" : ""));
  }
}

template <class T>
std::vector<T> IndexArrays::read(std::uint64_t offset, std::int64_t count) const {
  std::vector<T> values(static_cast<std::size_t>(count));
  read_(offset, values.data(), values.size() * sizeof(T));
  return values;
}

std::vector<std::int64_t> IndexArrays::lengths(std::int64_t begin, std::int64_t end) const {
  if (!is_mmap()) {
    return read<std::int64_t>(lengths_ + 8 * begin, end - begin);
  }
  const auto values = read<std::int32_t>(lengths_ + 4 * begin, end - begin);
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> IndexArrays::offsets(std::int64_t begin, std::int64_t end) const {
  return read<std::int64_t>(offsets_ + 8 * begin, end - begin);
}

std::vector<std::int64_t> IndexArrays::marks(std::int64_t begin, std::int64_t end) const {
  return read<std::int64_t>(marks_ + 8 * begin, end - begin);
}

// A sequence ends where the next begins, so that one read tells both; only the last one of the mmap
// format needs another.
SequencePlace IndexArrays::place(std::int64_t sequence) const {
  const auto unit = static_cast<std::int64_t>(is_mmap() ? size_of(type_) : 1);
  std::int64_t borders[2];
  if (is_mmap() && sequence + 1 == num_sequences_) {
    read_(offsets_ + 8 * sequence, borders, 8);
    return {borders[0] / unit, lengths(sequence, sequence + 1)[0]};
  }
  read_(offsets_ + 8 * sequence, borders, 16);
  return {borders[0] / unit, (borders[1] - borders[0]) / unit};
}

// Takes the counts of a header after checking that the arrays they announce fill the file exactly.
void IndexArrays::set_counts(std::uint64_t sequences, std::uint64_t marks, std::uint64_t header,
                             std::uint64_t per_sequence, std::uint64_t further) {
  const std::uint64_t size = size_;
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

void IndexArrays::read_mmap_header(const std::vector<std::byte>& head) {
  check(head.size() >= kMmapHeader, path_, " is cut short: ", head.size(),
        " bytes do not hold the header of ", kMmapHeader);
  const std::byte* at = head.data();
  const auto version = load_value<std::uint64_t>(at + 9);
  check(version == kVersion, path_, " has version ", version, "; only version 1 is known");
  const auto code = load_value<std::uint8_t>(at + 17);
  const auto type = token_type_of_code(code);
  check(type.has_value(), path_, " has the unknown token type ", int{code}, "; 1 to 8 are known");
  format_ = CorpusFormat::mmap;
  type_ = *type;
  set_counts(load_value<std::uint64_t>(at + 18), load_value<std::uint64_t>(at + 26), kMmapHeader,
             12, 0);
  lengths_ = kMmapHeader;
  offsets_ = lengths_ + num_sequences_ * 4;
  marks_ = offsets_ + num_sequences_ * 8;
}

void IndexArrays::read_tnt_header(const std::vector<std::byte>& head) {
  check(head.size() >= kTntHeader, path_, " is cut short: ", head.size(),
        " bytes do not hold the header of ", kTntHeader);
  const std::byte* at = head.data();
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
  dimensions_ = kTntHeader;
  offsets_ = dimensions_ + (num_sequences_ + 1) * 8;
  lengths_ = offsets_ + (num_sequences_ + 1) * 8;
  marks_ = lengths_ + num_sequences_ * 8;
}

void IndexArrays::check_sequences(std::int64_t begin, std::int64_t end,
                                  std::uint64_t bin_bytes) const {
  const auto unit = static_cast<std::int64_t>(is_mmap() ? size_of(type_) : 1);
  const auto room = static_cast<std::int64_t>(bin_bytes / (is_mmap() ? 1 : size_of(type_)));
  const char* const unit_name = is_mmap() ? " bytes" : " tokens";
  const std::int64_t last = is_mmap() ? std::min(end + 1, num_sequences_) : end + 1;
  const std::vector<std::int64_t> lengths = this->lengths(begin, end),
                                  starts = offsets(begin, last);
  const auto dimensions = is_mmap() ? std::vector<std::int64_t>()
                                    : read<std::int64_t>(dimensions_ + 8 * begin, end - begin);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t length = lengths[i - begin], start = starts[i - begin];
    check(length >= 0 && length <= std::numeric_limits<std::int32_t>::max(), path_, ": sequence ",
          i, " has length ", length);
    check(start >= 0 && start <= room && length <= (room - start) / unit, path_, ": sequence ", i,
          " lies at", unit_name, " ", start, " to ", start, " + ", length, " x ", unit,
          ", but the .bin has ", room, unit_name,
          ": it is shorter than the index says, or of another corpus");
    if (i + 1 < last) {
      const std::int64_t next = starts[i + 1 - begin];
      check(next == start + length * unit, path_, ": sequence ", i + 1, " starts at", unit_name,
            " ", next, ", not where sequence ", i, " ends, at ", start + length * unit);
    }
    check(is_mmap() || dimensions[i - begin] == i, path_, ": item ", i,
          " is not a sequence, of one dimension");
  }
}

// The number of documents without sequences in [begin, end).
std::int64_t IndexArrays::check_documents(std::int64_t begin, std::int64_t end) const {
  const std::vector<std::int64_t> marks = this->marks(begin, end + 1);
  std::int64_t empty = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t first = marks[i - begin], next = marks[i + 1 - begin];
    check(first <= next, path_, ": document ", i, " starts at sequence ", first, " and document ",
          i + 1, " at ", next, "; document marks must not descend");
    empty += first == next ? 1 : 0;
  }
  return empty;
}

IndexArrays::Totals IndexArrays::check_arrays(std::uint64_t bin_bytes) const {
  const std::int64_t documents = num_marks_ - 1;
  const std::int64_t first = marks(0, 1)[0], last = marks(documents, num_marks_)[0];
  check(first == 0, path_, ": the first document starts at sequence ", first, " instead of 0");
  check(last == num_sequences_, path_, ": the last document ends at sequence ", last,
        ", but there are ", num_sequences_);
  const std::int64_t start = num_sequences_ == 0 ? 0 : offsets(0, 1)[0];
  check(start == 0, path_, ": the first sequence starts at ", start, " of the .bin instead of 0");
  check(bin_bytes % size_of(type_) == 0, path_, ": the .bin has ", bin_bytes,
        " bytes, which is no whole number of tokens of type ", name(type_));

  ThreadPool pool(std::max(num_sequences_, documents) > 4 * kGrain ? 0 : 1);
  pool.for_ranges(num_sequences_, kGrain, [&](std::int64_t begin, std::int64_t end) {
    check_sequences(begin, end, bin_bytes);
  });
  std::atomic<std::int64_t> empty = 0;
  pool.for_ranges(documents, kGrain, [&](std::int64_t begin, std::int64_t end) {
    empty += check_documents(begin, end);
  });
  Totals totals{.empty_documents = empty};
  if (num_sequences_ > 0) {
    const SequencePlace end = place(num_sequences_ - 1);
    totals.tokens = end.first_token + end.length;
  }
  return totals;
}

}  // namespace bloomery
