#include "text/input/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "text/input/byte_source.h"
#include "text/parquet/parquet_file.h"

namespace bloomery {
namespace {

using namespace std::string_view_literals;

// FILE in the advice stands for the name of the file.
struct Kind {
  std::string_view name;
  std::size_t at;  // where the magic number is
  std::string_view magic;
  std::string_view advice;
};

constexpr std::string_view kParquetAdvice =
    "Parquet is read where JSON lines are, from a file of its own: uncompressed, not through a "
    "pipe, and without --input-format text";
constexpr std::string_view kEncryptedAdvice = "write it without encryption";
constexpr std::string_view kArrowAdvice =
    "write its rows as JSON lines first, for example with datasets: "
    "datasets.Dataset.from_file('FILE').to_json('FILE.jsonl')";
constexpr std::string_view kUnpackAdvice = "unpack it and name the files in it";

// The first that fits counts, so UTF-32 stands before UTF-16.
constexpr auto kKinds = std::to_array<Kind>({
    {"UTF-32 text", 0, "\xFF\xFE\0\0"sv, "convert it: iconv -f UTF-32 -t UTF-8 FILE"},
    {"UTF-32 text", 0, "\0\0\xFE\xFF"sv, "convert it: iconv -f UTF-32 -t UTF-8 FILE"},
    {"UTF-16 text", 0, "\xFF\xFE"sv, "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {"UTF-16 text", 0, "\xFE\xFF"sv, "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {"a Parquet file", 0, "PAR1"sv, kParquetAdvice},
    {"an encrypted Parquet file", 0, "PARE"sv, kEncryptedAdvice},
    {"an Arrow file", 0, "ARROW1\0\0"sv, kArrowAdvice},
    {"an Arrow stream", 0, "\xFF\xFF\xFF\xFF"sv, kArrowAdvice},
    {"compressed by bzip2", 0, "BZh"sv, "decompress it: bunzip2 FILE"},
    {"compressed by lz4", 0, "\x04\x22\x4D\x18"sv, "decompress it: unlz4 FILE"},
    {"a zip archive", 0, "PK\x03\x04"sv, kUnpackAdvice},
    {"a 7z archive", 0, "7z\xBC\xAF\x27\x1C"sv, kUnpackAdvice},
    {"a tar archive", 257, "ustar"sv, kUnpackAdvice},
    {"a PDF file", 0, "%PDF-"sv, "extract its text first, for example with pdftotext"},
});

// Some magic numbers are letters, which may begin a text too: what follows tells.
bool is_really(const Kind& kind, std::string_view head) {
  if (kind.magic == "BZh") {  // a block, or the end of an empty stream
    const std::string_view block = head.substr(std::min<std::size_t>(4, head.size()));
    return block.starts_with("1AY&SY") || block.starts_with("\x17\x72\x45\x38\x50\x90");
  }
  if (kind.magic == "PARE") return head.size() > 4 && static_cast<unsigned char>(head[4]) < ' ';
  return true;
}

// UTF-16 without its mark: of most pairs of bytes, the same one is NUL.
std::string_view unmarked_utf16(std::string_view head) {
  constexpr std::size_t kFewestPairs = 8;
  const std::size_t pairs = head.size() / 2;
  std::array<std::size_t, 2> zeros = {};
  for (std::size_t i = 0; i < 2 * pairs; ++i) zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  const auto mostly = [&](std::size_t many, std::size_t few) {
    return pairs >= kFewestPairs && 2 * many > pairs && 8 * few < many;
  };
  return mostly(zeros[1], zeros[0]) ? "UTF-16LE" : mostly(zeros[0], zeros[1]) ? "UTF-16BE" : "";
}

std::string_view without_compression(std::string_view name) {
  for (const std::string_view ending : {".gz", ".xz", ".zst", ".zstd"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

// Names of columns: words without the marks of sentences, each short.
bool is_header(std::string_view line, char separator) {
  constexpr std::size_t kLongestName = 64;
  constexpr std::string_view kMarks = "!?;,:(){}[]<>\t";
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    const std::string_view name = line.substr(at, end - at);
    if (name.size() > kLongestName || name.ends_with('.') ||
        name.find_first_of(kMarks) != name.npos) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

bool is_csv(std::string_view file_name, std::string_view head) {
  const std::string_view name = without_compression(file_name);
  const char separator = name.ends_with(".tsv") ? '\t' : ',';
  if (separator == ',' && !name.ends_with(".csv")) return false;
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  std::size_t at = 0;
  const std::string_view line = next_line(head, at);
  return !line.empty() && (is_header(line, separator) || is_header(line, ';'));
}

std::string with_name(std::string_view advice, std::string_view file_name) {
  std::string text;
  for (std::size_t found; (found = advice.find("FILE")) != advice.npos;) {
    text.append(advice.substr(0, found)).append(file_name);
    advice.remove_prefix(found + 4);
  }
  return text.append(advice);
}

}  // namespace

std::string why_not_text(std::string_view file_name, std::string_view head, LineFormat format) {
  for (const Kind& kind : kKinds) {
    if (head.size() > kind.at && head.substr(kind.at).starts_with(kind.magic) &&
        is_really(kind, head)) {
      return concat("it is ", kind.name, ", not lines of UTF-8 text; ",
                    with_name(kind.advice, file_name));
    }
  }
  if (const std::string_view utf16 = unmarked_utf16(head.substr(0, kHeadBytes)); !utf16.empty()) {
    return concat("it is ", utf16, " text; convert it: iconv -f ", utf16, " -t UTF-8 ", file_name);
  }
  if (format == LineFormat::automatic && is_csv(file_name, head) &&
      recognise_format(file_name, head) == LineFormat::text) {
    return with_name(
        "it is a CSV file with a header, and a row is no document; write its rows as JSON lines "
        "first, for example with pandas: pandas.read_csv('FILE').to_json('FILE.jsonl', "
        "orient='records', lines=True, force_ascii=False). --input-format text takes each line "
        "as a document all the same",
        file_name);
  }
  return {};
}

void check_is_text(const std::string& file_name, std::string_view head, LineFormat format) {
  const std::string why = why_not_text(file_name == "-" ? "FILE" : file_name, head, format);
  check(why.empty(), shown_name(file_name), " cannot be read: ", why);
}

void check_are_text(const std::vector<std::string>& files, LineFormat format) {
  std::vector<char> head(kHeadBytes);
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    if (format != LineFormat::text && is_parquet(file)) continue;
    const std::unique_ptr<ByteSource> source = decompressed(std::make_unique<FileSource>(file));
    std::size_t used = 0;
    while (used < head.size()) {
      const std::size_t count = source->read({head.data() + used, head.size() - used});
      if (count == 0) break;
      used += count;
    }
    check_is_text(file, {head.data(), used}, format);
  }
}

}  // namespace bloomery
