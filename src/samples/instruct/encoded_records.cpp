#include "samples/instruct/encoded_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/json_fields.h"
#include "samples/index_files.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

enum Part { kIds, kLossMask, kEnds, kNotes };

fs::path part(const fs::path& stem, Part which) {
  return with_suffix(stem, kEncodedSuffixes[which]);
}

std::string hash_of(const InputFile& file) {
  constexpr std::uint64_t kAtOnce = 1 << 20;
  RunningXxh3 hash;
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < file.size(); at += kAtOnce) {
    piece.resize(static_cast<std::size_t>(std::min(kAtOnce, file.size() - at)));
    file.read(at, piece.data(), piece.size());
    hash.add(piece);
  }
  return hash_text(hash.value());
}

void check_part(const InputFile& file, std::int64_t bytes, const std::string& hash) {
  check(file.size() == static_cast<std::uint64_t>(bytes), file.name(), " has ", file.size(),
        " bytes instead of ", bytes);
  check(hash_of(file) == hash, file.name(), " has other bytes than were written");
}

template <class T>
void read_some(const InputFile& file, std::int64_t first, std::span<T> to) {
  file.read(static_cast<std::uint64_t>(first) * sizeof(T), to.data(), to.size_bytes());
}

}  // namespace

EncodedRecords::EncodedRecords(const fs::path& stem)
    : ids_(part(stem, kIds)), loss_mask_(part(stem, kLossMask)), ends_(part(stem, kEnds)) {
  const fs::path notes = part(stem, kNotes);
  const JsonFields fields(read_file(notes), notes.string());
  size_ = fields.count("examples");
  const std::int64_t tokens = fields.count("tokens");
  check_part(ids_, tokens * static_cast<std::int64_t>(sizeof(TokenId)),
             fields.get<std::string>("ids"));
  check_part(loss_mask_, tokens, fields.get<std::string>("loss_mask"));
  check_part(ends_, size_ * static_cast<std::int64_t>(sizeof(std::int64_t)),
             fields.get<std::string>("ends"));
  left_out_.count = fields.count("left_out");
  left_out_.reason = fields.get<std::string>("reason");
  for (const JsonFields& place : fields.get<std::vector<JsonFields>>("places")) {
    left_out_.first.push_back(
        {static_cast<std::size_t>(place.count("file")), place.get<std::string>("name")});
  }
}

std::vector<std::int64_t> EncodedRecords::borders(std::int64_t first, std::int64_t last) const {
  check(first >= 0 && first < last && last <= size_, "examples ", first, " to ", last, " of ",
        size_);
  std::vector<std::int64_t> borders(static_cast<std::size_t>(last - first + 1), 0);
  const std::int64_t skipped = first == 0 ? 1 : 0;  // nothing ends where the first one begins
  read_some(ends_, first - 1 + skipped,
            std::span(borders).subspan(static_cast<std::size_t>(skipped)));
  return borders;
}

void EncodedRecords::read(std::int64_t number, std::int64_t most, InstructExample& example) const {
  const std::vector<std::int64_t> ends = borders(number, number + 1);
  const auto length = static_cast<std::size_t>(std::min(most, ends[1] - ends[0]));
  example.ids.resize(length);
  example.loss_mask.resize(length);
  read_some(ids_, ends[0], std::span(example.ids));
  read_some(loss_mask_, ends[0], std::span(example.loss_mask));
}

void EncodedRecords::for_each(std::int64_t first, std::int64_t last, const Body& body) const {
  constexpr std::int64_t kAtOnce = 1024;
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> loss_mask;
  for (std::int64_t begin = first; begin < last; begin += kAtOnce) {
    const std::int64_t end = std::min(last, begin + kAtOnce);
    const std::vector<std::int64_t> ends = borders(begin, end);
    ids.resize(static_cast<std::size_t>(ends.back() - ends.front()));
    loss_mask.resize(ids.size());
    read_some(ids_, ends.front(), std::span(ids));
    read_some(loss_mask_, ends.front(), std::span(loss_mask));
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const auto at = static_cast<std::size_t>(ends[i] - ends.front());
      const auto count = static_cast<std::size_t>(ends[i + 1] - ends[i]);
      body(begin + static_cast<std::int64_t>(i), std::span<const TokenId>(ids).subspan(at, count),
           std::span<const std::uint8_t>(loss_mask).subspan(at, count));
    }
  }
}

EncodedRecordsWriter::EncodedRecordsWriter(const fs::path& stem)
    : stem_(stem),
      ids_(part(stem, kIds)),
      loss_mask_(part(stem, kLossMask)),
      ends_(part(stem, kEnds)) {}

void EncodedRecordsWriter::Output::write(std::span<const std::byte> bytes) {
  hash.add(bytes);
  file.write(bytes);
}

void EncodedRecordsWriter::add(const InstructExample& example) {
  tokens_ += std::ssize(example.ids);
  ++size_;
  ids_.write(std::as_bytes(std::span(example.ids)));
  loss_mask_.write(std::as_bytes(std::span(example.loss_mask)));
  ends_.write(std::as_bytes(std::span(&tokens_, 1)));
}

void EncodedRecordsWriter::commit(const LeftOutRecords& left_out) {
  nlohmann::ordered_json places = nlohmann::ordered_json::array();
  for (const LeftOutRecords::Place& place : left_out.first) {
    places.push_back({{"file", place.file}, {"name", place.name}});
  }
  const nlohmann::ordered_json notes = {{"examples", size_},
                                        {"tokens", tokens_},
                                        {"ids", hash_text(ids_.hash.value())},
                                        {"loss_mask", hash_text(loss_mask_.hash.value())},
                                        {"ends", hash_text(ends_.hash.value())},
                                        {"left_out", left_out.count},
                                        {"reason", left_out.reason},
                                        {"places", places}};
  for (Output* output : {&ids_, &loss_mask_, &ends_}) {
    output->file.flush();
    output->file.file().commit();
  }
  write_file(part(stem_, kNotes),
             notes.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace bloomery
