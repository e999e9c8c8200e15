#include "text/input/file_kind.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "text/input/byte_source.h"
#include "text/input/line_reader.h"

namespace bloomery {
namespace {

using namespace std::string_literals;

std::string why(std::string_view name, std::string_view head,
                LineFormat format = LineFormat::automatic) {
  return why_not_text(name, head, format);
}

std::string utf16(std::string_view ascii, bool little) {
  std::string bytes;
  for (const char c : ascii) {
    if (!little) bytes += '\0';
    bytes += c;
    if (little) bytes += '\0';
  }
  return bytes;
}

TEST(FileKind, TextIsText) {
  for (const std::string& text :
       {""s, "a"s, "Hello\n"s, "\xEF\xBB\xBFone\n"s, "BZh is no word\n"s, "PAR for the course\n"s,
        "PAREIDOLIA\n"s, "{\"text\":\"a\"}\n"s, "\0a NUL in a line\n"s, std::string(300, '\0')}) {
    EXPECT_EQ(why("a.txt", text), "") << text;
  }
}

TEST(FileKind, OtherKindsSayWhatToDo) {
  const std::vector<std::tuple<std::string, std::string, std::string>> kinds = {
      {"\xFF\xFE"s + utf16("One\n", true), "UTF-16", "iconv -f UTF-16 -t UTF-8 in.txt"},
      {"\xFE\xFF"s + utf16("One\n", false), "UTF-16", "iconv -f UTF-16 -t UTF-8 in.txt"},
      {utf16("One two three.\n", true), "UTF-16LE", "iconv -f UTF-16LE"},
      {utf16("One two three.\n", false), "UTF-16BE", "iconv -f UTF-16BE"},
      {"\xFF\xFE\0\0O\0\0\0"s, "UTF-32", "iconv -f UTF-32"},
      {"PAR1\x15\x04\x15"s, "Parquet", "uncompressed, not through a pipe"},
      {"PAR1 or letters\n"s, "Parquet", "a file of its own"},
      {"PARE\x15\x04\x15"s, "encrypted Parquet", "without encryption"},
      {"ARROW1\0\0\xFF"s, "Arrow", "from_file"},
      {"BZh91AY&SY\x12"s, "bzip2", "bunzip2 in.txt"},
      {"PK\x03\x04\x14"s, "zip", "unpack"},
      {std::string(257, 'x') + "ustar\0"s, "tar", "unpack"},
      {"%PDF-1.7\n"s, "PDF", "pdftotext"},
  };
  for (const auto& [head, kind, advice] : kinds) {
    for (const auto format : {LineFormat::automatic, LineFormat::text, LineFormat::jsonl}) {
      const std::string text = why("in.txt", head, format);
      EXPECT_NE(text.find(kind), text.npos) << kind << ": " << text;
      EXPECT_NE(text.find(advice), text.npos) << kind << ": " << text;
    }
  }
}

TEST(FileKind, CsvWhereNameAndHeaderSaySo) {
  for (const char* head : {"text\nOne, two\n", "id,text\n1,\"Hello, you\"\n",
                           "\"id\";\"the text\"\n", "\xEF\xBB\xBFid,meta.url,text\r\n"}) {
    EXPECT_NE(why("a.csv", head), "") << head;
    EXPECT_NE(why("a.csv.gz", head), "") << head;
    EXPECT_EQ(why("a.csv", head, LineFormat::text), "") << head;
    EXPECT_EQ(why("a.txt", head), "") << head;
  }
  EXPECT_NE(why("a.tsv", "id\ttext\n1\tHello\n"), "");
  EXPECT_EQ(why("a.csv", "{\"text\": \"a\"}\n"), "");
  EXPECT_EQ(why("a.csv", "Hello, this is prose.\n"), "");
  EXPECT_EQ(why("a.csv", ""), "");
}

TEST(FileKind, EveryReaderRefusesThem) {
  const TemporaryFolder folder;
  const std::string good = folder.file("a.txt", "One\n"),
                    bad = folder.file("b.txt", "\xFF\xFE"s + utf16("One\n", true)),
                    csv = folder.file("c.csv", "id,text\n1,One\n");
  EXPECT_THROW(check_are_text({good, bad}, LineFormat::text), Error);
  EXPECT_THROW(check_are_text({good, csv}, LineFormat::automatic), Error);
  EXPECT_NO_THROW(check_are_text({good, csv, "-"}, LineFormat::text));
  EXPECT_THROW(read_decompressed(bad), Error);
  LineReader reader({good, bad}, {});
  LineChunk chunk;
  EXPECT_TRUE(reader.next(chunk));
  EXPECT_THROW(reader.next(chunk), Error);
}

}  // namespace
}  // namespace bloomery
