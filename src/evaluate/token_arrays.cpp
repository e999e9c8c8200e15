// Reading of --ids files.
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "corpus/npy.h"
#include "evaluate/logits.h"
#include "text/input/line_format.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;
using Row = std::vector<TokenId>;

// JSON of little depth: an array of arrays of numbers has three levels.
Json parse_shallow(std::string_view text, const std::string& place) {
  const auto shallow = [&](int depth, Json::parse_event_t, const Json&) {
    check(depth <= 4, place, ": nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::exception& error) {
    throw Error(concat(place, ": not valid JSON: ", error.what()));
  }
}

TokenId checked_id(std::int64_t value, const std::string& place) {
  check(value >= 0 && value <= std::numeric_limits<TokenId>::max(), place, ": ", value,
        " is no token id");
  return static_cast<TokenId>(value);
}

Row row_of(const Json& array, const std::string& place) {
  check(array.is_array(), place, ": an array of token ids was expected");
  Row row;
  for (const Json& value : array) {
    check(value.is_number_unsigned(), place, ": ", value.dump(), " is no token id");
    check(value.get<std::uint64_t>() <= std::uint64_t{1} << 62, place, ": ", value.dump(),
          " is no token id");
    row.push_back(checked_id(value.get<std::int64_t>(), place));
  }
  return row;
}

TokenArrays arrays_of(const Json& value, const std::string& place) {
  check(value.is_array() && !value.empty(), place, ": an array of token ids was expected");
  TokenArrays arrays;
  if (!value[0].is_array()) {
    arrays.rows.push_back(row_of(value, place));
    arrays.single = true;
    return arrays;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    arrays.rows.push_back(row_of(value[i], concat(place, ": array ", i)));
  }
  return arrays;
}

// Numbers with spaces or commas between them.
Row row_of_numbers(std::string_view line, const std::string& place) {
  Row row;
  const char* at = line.data();
  const char* const end = line.data() + line.size();
  while (true) {
    while (at != end && (*at == ' ' || *at == '\t' || *at == ',' || *at == '\r')) {
      ++at;
    }
    if (at == end) {
      return row;
    }
    std::int64_t value = -1;
    const auto read = std::from_chars(at, end, value);
    check(read.ec == std::errc(), place, ": not a list of token ids");
    row.push_back(checked_id(value, place));
    at = read.ptr;
  }
}

TokenArrays arrays_of_lines(std::string_view text, const std::string& path) {
  TokenArrays arrays;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = next_line(text, at);
    const std::string place = concat(path, ": line ", ++number);
    if (is_blank(line)) {
      continue;
    }
    const bool json = line[line.find_first_not_of(" \t")] == '[';
    arrays.rows.push_back(json ? row_of(parse_shallow(line, place), place)
                               : row_of_numbers(line, place));
  }
  arrays.single = arrays.rows.size() == 1;
  return arrays;
}

template <class T>
TokenArrays arrays_of_npy(const NpyFile& file) {
  const std::string path = file.path().string();
  TokenArrays arrays{.single = file.shape().size() == 1};
  const std::vector<T> values = file.values<T>();
  const auto length = static_cast<std::size_t>(file.shape().back());
  for (std::size_t begin = 0; length > 0 && begin < values.size(); begin += length) {
    Row& row = arrays.rows.emplace_back();
    for (const T value : std::span(values).subspan(begin, length)) {
      check(std::in_range<TokenId>(value), path, ": ", value, " is no token id");
      row.push_back(checked_id(static_cast<std::int64_t>(value), path));
    }
  }
  return arrays;
}

TokenArrays read_npy(const std::filesystem::path& path) {
  const NpyFile file(path);
  switch (file.type()) {
    case NpyType::u8:
      return arrays_of_npy<std::uint8_t>(file);
    case NpyType::u16:
      return arrays_of_npy<std::uint16_t>(file);
    case NpyType::i32:
      return arrays_of_npy<std::int32_t>(file);
    case NpyType::u32:
      return arrays_of_npy<std::uint32_t>(file);
    case NpyType::u64:
      return arrays_of_npy<std::uint64_t>(file);
    default:
      return arrays_of_npy<std::int64_t>(file);
  }
}

// One JSON value over several lines, or something on each line.
TokenArrays read_text_arrays(const std::string& text, const std::string& path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  check(first != text.npos, path, " holds no token ids");
  if (text[first] != '[') {
    return arrays_of_lines(text, path);
  }
  const bool whole = Json::accept(text);
  return whole ? arrays_of(parse_shallow(text, path), path) : arrays_of_lines(text, path);
}

}  // namespace

TokenArrays read_token_arrays(const std::filesystem::path& path) {
  check(std::filesystem::is_regular_file(path), path.string(), " is no file");
  const std::string text = read_file(path);
  const bool npy = text.starts_with("\x93NUMPY");
  TokenArrays arrays = npy ? read_npy(path) : read_text_arrays(text, path.string());
  check(!arrays.rows.empty(), path.string(), " holds no token ids");
  for (std::size_t i = 0; i < arrays.rows.size(); ++i) {
    check(!arrays.rows[i].empty(), path.string(), ": array ", i, " is empty");
    check(arrays.rows[i].size() == arrays.rows[0].size(), path.string(), ": array ", i, " has ",
          arrays.rows[i].size(), " ids, but array 0 has ", arrays.rows[0].size(),
          "; give arrays of one length, or each in a file of its own");
  }
  return arrays;
}

}  // namespace bloomery
