#include "corpus/writer_files.h"

#include <chrono>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/folder.h"
#include "corpus/index_file.h"

namespace bloomery {
namespace {

template <class T>
void write_value(BufferedBytes& to, T value) {
  to.write(std::as_bytes(std::span(&value, 1)));
}

void write_text(BufferedBytes& to, const char* text, std::size_t size) {
  to.write(std::as_bytes(std::span(text, size)));
}

// How long a writer waits for another one of the same folder, which renames two files under the
// lock.
constexpr std::chrono::seconds kLongestWait{120};

}  // namespace

CorpusFiles::CorpusFiles(const std::filesystem::path& prefix, TokenType type, CorpusFormat format)
    : prefix_(prefix),
      type_(type),
      format_(format),
      bin_(bin_path(prefix)),
      lengths_(idx_path(prefix)),
      marks_(idx_path(prefix)) {}

std::uint64_t CorpusFiles::bytes_needed() const {
  const std::uint64_t sequences = lengths_.size() / 4;
  const std::uint64_t index = sequences * (format_ == CorpusFormat::mmap ? 12 : 24);
  return bin_.size() + lengths_.size() + 2 * marks_.size() + index;
}

std::uint64_t CorpusFiles::bytes_available() const {
  std::error_code unknown;
  return std::filesystem::space(folder_of(prefix_), unknown).available;
}

void CorpusFiles::write_offsets(BufferedBytes& idx, std::int64_t unit) {
  std::vector<std::int64_t> offsets;
  std::int64_t next = 0;
  lengths_.for_each_piece<std::int32_t>([&](std::span<const std::int32_t> lengths) {
    offsets.clear();
    for (const std::int32_t length : lengths) {
      offsets.push_back(next);
      next += length * unit;
    }
    idx.write(std::as_bytes(std::span(offsets)));
  });
}

void CorpusFiles::write_marks(BufferedBytes& idx) {
  write_value(idx, std::int64_t{0});
  marks_.for_each_piece<std::int64_t>(
      [&](std::span<const std::int64_t> marks) { idx.write(std::as_bytes(marks)); });
}

void CorpusFiles::write_mmap_index(BufferedBytes& idx, std::int64_t sequences,
                                   std::int64_t documents) {
  write_text(idx, kMmapMagic, sizeof kMmapMagic);
  write_value(idx, std::uint64_t{1});
  write_value(idx, static_cast<std::uint8_t>(type_));
  write_value(idx, sequences);
  write_value(idx, documents + 1);
  lengths_.for_each_piece<std::int32_t>(
      [&](std::span<const std::int32_t> lengths) { idx.write(std::as_bytes(lengths)); });
  write_offsets(idx, static_cast<std::int64_t>(size_of(type_)));
  write_marks(idx);
}

void CorpusFiles::write_tnt_index(BufferedBytes& idx, std::int64_t sequences,
                                  std::int64_t documents, std::int64_t tokens) {
  write_text(idx, kTntMagic, sizeof kTntMagic);
  for (const std::int64_t field :
       {std::int64_t{1}, static_cast<std::int64_t>(type_),
        static_cast<std::int64_t>(size_of(type_)), sequences, sequences, documents + 1}) {
    write_value(idx, field);
  }
  for (std::int64_t i = 0; i <= sequences; ++i) {
    write_value(idx, i);
  }
  write_offsets(idx, 1);
  write_value(idx, tokens);
  lengths_.for_each_piece<std::int32_t>([&](std::span<const std::int32_t> lengths) {
    const std::vector<std::int64_t> wide(lengths.begin(), lengths.end());
    idx.write(std::as_bytes(std::span(wide)));
  });
  write_marks(idx);
}

void CorpusFiles::commit(std::int64_t sequences, std::int64_t documents, std::int64_t tokens) {
  bin_.flush();
  BufferedFile idx(idx_path(prefix_));
  if (format_ == CorpusFormat::mmap) {
    write_mmap_index(idx, sequences, documents);
  } else {
    write_tnt_index(idx, sequences, documents, tokens);
  }
  idx.flush();
  std::optional<AtomicFile> note;
  if (tokenizer_) {  // it names the sizes of its corpus, so that it counts for no other
    note.emplace(tokenizer_note_path(prefix_));
    note->write(tokenizer_note(*tokenizer_, bin_.size(), idx.size()));
    note->sync();
  }
  // What can fail is done before the old pair is touched. From here on a reader finds the old pair,
  // or no .idx, or the new pair: never the one's .idx with the other's .bin.
  bin_.file().sync();
  idx.file().sync();
  const FileLock lock(folder_of(prefix_) / kCorpusLock, {.longest = kLongestWait});
  std::filesystem::remove(tokenizer_note_path(prefix_));
  std::filesystem::remove(idx_path(prefix_));
  if (note) note->commit();
  bin_.file().commit();
  idx.file().commit();
}

}  // namespace bloomery
