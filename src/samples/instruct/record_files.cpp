#include "samples/instruct/record_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"
#include "text/input/byte_source.h"
#include "text/input/input_files.h"

namespace bloomery {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

void read_array(const std::string& bytes, const std::string& name,
                std::vector<RecordText>& records) {
  check_json_depth(bytes, kMaxJsonTreeDepth + 1);
  try {
    const auto array = nlohmann::ordered_json::parse(bytes);
    for (const auto& item : array) {
      records.push_back({item.dump(), concat(name, ", record ", records.size() + 1)});
    }
  } catch (const nlohmann::ordered_json::exception& error) {
    throw Error(concat(name, ": not valid JSON: ", error.what()));
  }
}

void read_lines(const std::string& bytes, const std::string& name,
                std::vector<RecordText>& records) {
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    ++line;
    std::string text = bytes.substr(begin, end - begin);
    if (text.find_first_not_of(kSpace) != std::string::npos) {
      records.push_back({std::move(text), concat(name, ", line ", line)});
    }
    begin = end + 1;
  }
}

}  // namespace

std::vector<RecordText> read_record_files(const std::vector<std::string>& paths_and_patterns) {
  std::vector<RecordText> records;
  for (const std::string& path : input_files(paths_and_patterns, "--data-path")) {
    const std::string bytes = read_decompressed(path);
    const std::size_t first = bytes.find_first_not_of(kSpace);
    const bool array = first != std::string::npos && bytes[first] == '[';
    (array ? read_array : read_lines)(bytes, shown_name(path), records);
  }
  return records;
}

}  // namespace bloomery
