#include "evaluate/text_input.h"

#include <filesystem>

#include "corpus/indexed_corpus.h"
#include "text/input/byte_source.h"
#include "text/input/file_kind.h"
#include "text/input/json_line.h"
#include "text/input/line_format.h"
#include "text/input/line_reader.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

void require_file(const std::string& path) {
  check(std::filesystem::exists(path), path, " does not exist");
  check(!std::filesystem::is_directory(path), path, " is a folder, not a file");
}

}  // namespace

std::string read_text(const std::string& path) {
  require_file(path);
  const auto source = decompressed(std::make_unique<FileSource>(path));
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (const std::size_t count = source->read(buffer)) {
    text.append(buffer.data(), count);
  }
  check_is_text(path, std::string_view(text).substr(0, kHeadBytes), LineFormat::text);
  const std::size_t valid = valid_utf8_prefix(text);
  check(
      valid == text.size(), path, ": byte ", valid,
      " is not valid UTF-8; convert the file, for example from Latin-1: iconv -f LATIN1 -t UTF-8 ",
      path);
  return text;
}

void for_each_json_text(const std::string& path, const std::string& key,
                        const std::function<void(std::string_view, std::int64_t)>& body) {
  require_file(path);
  LineReader reader({path}, {.columns = {key}});
  JsonLineParser parser({key});
  LineChunk chunk;
  std::int64_t number = 0;
  while (reader.next(chunk)) {
    check(chunk.overlong_bytes == 0, path, ": line ", number + 1, " has ", chunk.overlong_bytes,
          " bytes, too many for a line");
    const std::string_view text = chunk.bytes();
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view line = next_line(text, at);
      ++number;
      if (!is_blank(line)) {
        check(parser.parse(line), path, ": line ", number, ": ", parser.fault(),
              "; the text of a line is under --json-key ", key);
        body(parser.text(0), number);
      }
    }
  }
}

bool is_json_lines(const std::string& path) {
  require_file(path);
  LineReader reader({path}, {.chunk_bytes = 1 << 16});
  LineChunk chunk;
  return reader.next(chunk) && chunk.format != LineFormat::text;
}

std::string corpus_prefix(const std::string& path) {
  std::string prefix = path;
  if (path.ends_with(".bin") || path.ends_with(".idx")) {
    prefix.resize(prefix.size() - 4);
  } else if (std::filesystem::exists(path)) {
    return "";
  }
  return std::filesystem::exists(idx_path(prefix)) ? prefix : "";
}

}  // namespace bloomery
