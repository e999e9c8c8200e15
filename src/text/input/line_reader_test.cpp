#include "text/input/line_reader.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "text/input/input_files.h"
#include "text/input/line_format.h"

namespace bloomery {
namespace {

class Folder {
 public:
  std::string write(const std::string& name, std::string_view bytes) const {
    return folder_.file(name, bytes);
  }
  std::string operator/(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
};

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string xz(std::string_view text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Everything of all files, and that chunks are whole lines where they say they are.
std::string read_all(const std::vector<std::string>& files, const LineReaderOptions& options = {}) {
  LineReader reader(files, options);
  LineChunk chunk;
  std::string text;
  std::uint64_t next_offset = 0;
  while (reader.next(chunk)) {
    if (chunk.first_of_file) {
      next_offset = 0;
    }
    EXPECT_EQ(chunk.offset, next_offset);
    EXPECT_EQ(chunk.overlong_bytes, 0);
    EXPECT_LE(chunk.buffer.size(), options.max_line_bytes + 2 * options.chunk_bytes);
    next_offset += chunk.used;
    text += chunk.bytes();
  }
  return text;
}

std::string random_lines(std::size_t bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < bytes) {
    text.append(random() % 300, static_cast<char>('a' + random() % 26));
    text += '\n';
  }
  return text;
}

TEST(LineReader, EveryCompressionAndConcatenations) {
  const Folder folder;
  const std::string text = random_lines(600000);
  const std::string_view half(text.data(), text.size() / 2),
      rest(text.data() + text.size() / 2, text.size() - text.size() / 2);
  EXPECT_EQ(read_all({folder.write("plain", text)}), text);
  using Pack = std::string (*)(std::string_view);
  for (const auto& [name, pack] :
       {std::pair<const char*, Pack>{"gz", gzip}, {"xz", xz}, {"zst", zstd}}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read_all({folder.write("one", pack(text))}), text);
    EXPECT_EQ(read_all({folder.write("two", pack(half) + pack(rest))}, {.chunk_bytes = 1000}),
              text);
    EXPECT_EQ(read_all({folder.write("empty", pack(""))}), "");
    const std::string packed = pack(text);
    EXPECT_THROW(read_all({folder.write("cut", packed.substr(0, packed.size() / 2))}), Error);
    EXPECT_THROW(read_all({folder.write("cut", packed.substr(0, packed.size() - 1))}), Error);
    EXPECT_THROW(read_all({folder.write("tail", packed + "garbage")}), Error);
    std::string damaged = packed;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
    EXPECT_THROW(read_all({folder.write("damaged", damaged)}), Error);
  }
  EXPECT_EQ(read_all({folder.write("padded", gzip(text) + std::string(512, '\0'))}), text);
}

TEST(LineReader, ChunksOfWholeLines) {
  const Folder folder;
  const std::string text = random_lines(50000);
  for (const std::size_t chunk : {1, 7, 299, 4096, 100000}) {
    EXPECT_EQ(read_all({folder.write("a", text)}, {.chunk_bytes = chunk}), text);
    LineReader reader({folder / "a"}, {.chunk_bytes = chunk});
    LineChunk lines;
    while (reader.next(lines)) {
      EXPECT_TRUE(lines.bytes().ends_with('\n'));
    }
  }
}

TEST(LineReader, EndsMarksAndEmptyFiles) {
  const Folder folder;
  const std::vector<std::string> files = {folder.write("a", "\xEF\xBB\xBFone\ntwo"),
                                          folder.write("b", ""), folder.write("c", "three\n")};
  LineReader reader(files, {});
  LineChunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "one\ntwo");
  EXPECT_EQ(chunk.offset, 3);
  EXPECT_EQ(chunk.input_position, 10);
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "three\n");
  EXPECT_EQ(chunk.file, 2);
  EXPECT_EQ(chunk.offset, 0);
  EXPECT_EQ(chunk.input_position, 16);
  EXPECT_FALSE(reader.next(chunk));
}

TEST(LineReader, LinesOverTheLimitAreSkippedWithoutTheirBytes) {
  const Folder folder;
  const std::string text = "ok\n" + std::string(5000, 'x') + "\nfine\n" + std::string(3000, 'y');
  const LineReaderOptions limits{.chunk_bytes = 100, .max_line_bytes = 1000};
  LineReader reader({folder.write("a", text)}, limits);
  LineChunk chunk;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> overlong;
  std::string kept;
  while (reader.next(chunk)) {
    EXPECT_LE(chunk.buffer.capacity(), 2200);
    kept += chunk.bytes();
    if (chunk.overlong_bytes > 0) {
      overlong.emplace_back(chunk.offset, chunk.overlong_bytes);
    } else {
      EXPECT_EQ(text.substr(chunk.offset, chunk.used), chunk.bytes());
    }
  }
  EXPECT_EQ(kept, "ok\nfine\n");
  EXPECT_EQ(overlong,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3, 5000}, {5009, 3000}}));
}

TEST(InputFiles, PathsPatternsAndFaults) {
  const Folder folder;
  const std::string b = folder.write("b.jsonl", "12345"), a = folder.write("a.jsonl", "123"),
                    odd = folder.write("[x].jsonl", "");
  EXPECT_EQ(input_files({folder / "?.jsonl", "-", odd}),
            (std::vector<std::string>{a, b, "-", odd}));
  EXPECT_EQ(total_bytes({a, b}), 8);
  EXPECT_EQ(total_bytes({a, "-"}), 0);
  EXPECT_THROW(input_files({folder / "none"}), Error);
  EXPECT_THROW(input_files({folder / "*.txt"}), Error);
  EXPECT_THROW(input_files({folder / ""}), Error);
  EXPECT_THROW(input_files({"-", "-"}), Error);
  EXPECT_THROW(input_files({}), Error);
}

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(InputFiles, TheExampleForAFolderWorks) {
  const Folder folder;
  std::filesystem::create_directories(folder / "corpus/part");
  const std::string name = folder / "corpus";
  EXPECT_NE(error_of([&] { input_files({name}); }).find("it has no files"), std::string::npos);
  folder.write("corpus/README", "");
  folder.write("corpus/part/00.json.gz", gzip("{}\n"));
  folder.write("corpus/part/01.json.gz", gzip("{}\n"));
  const std::string said = error_of([&] { input_files({name + "/"}); });
  const std::size_t begin = said.find('\'') + 1;
  const std::string example = said.substr(begin, said.rfind('\'') - begin);
  EXPECT_EQ(input_files({example}).size(), 2) << said;
}

TEST(ReadDecompressed, HasALimit) {
  const Folder folder;
  const std::string bomb = folder.write("a.gz", gzip(std::string(1 << 20, 'x')));
  EXPECT_EQ(read_decompressed(bomb, 1 << 20).size(), 1 << 20);
  const std::string said = error_of([&] { read_decompressed(bomb, (1 << 20) - 1); });
  EXPECT_NE(said.find("holds more than 1048575 bytes"), said.npos) << said;
}

TEST(LineFormat, ByNameAndContent) {
  EXPECT_EQ(recognise_format("a.jsonl.gz", "anything"), LineFormat::jsonl);
  EXPECT_EQ(recognise_format("a.json", ""), LineFormat::jsonl);
  EXPECT_EQ(recognise_format("a.txt", "\n{\"text\":1}\n"), LineFormat::jsonl);
  EXPECT_EQ(recognise_format("-", "bad line\n{}\n"), LineFormat::jsonl);
  EXPECT_EQ(recognise_format("-", "{a\nplain\n"), LineFormat::text);
  EXPECT_EQ(recognise_format("a", ""), LineFormat::text);
}

TEST(LineFormat, Lines) {
  std::size_t at = 0;
  const std::string_view text = "a\r\n\nb\rc";
  EXPECT_EQ(next_line(text, at), "a");
  EXPECT_EQ(next_line(text, at), "");
  EXPECT_EQ(next_line(text, at), "b\rc");
  EXPECT_EQ(at, text.size());
  EXPECT_TRUE(is_blank(" \t\r"));
  EXPECT_FALSE(is_blank(" x"));
}

TEST(LineReader, BeginsAtALineOfTheFirstFile) {
  const Folder folder;
  const std::vector<std::string> files = {folder.write("a.gz", gzip("one\ntwo\nthree\n")),
                                          folder.write("b", "four\n")};
  LineReader reader(files, {.format = LineFormat::text, .first_file = 7, .begin = 4});
  LineChunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "two\nthree\n");
  EXPECT_EQ(chunk.offset, 4);
  EXPECT_EQ(chunk.file, 7);
  EXPECT_FALSE(chunk.first_of_file);
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "four\n");
  EXPECT_EQ(chunk.file, 8);
  LineReader behind(files, {.begin = 100});
  EXPECT_THROW(behind.next(chunk), Error);
}

// A pipe that has said one short line, and no more, gets it out.
TEST(LineReader, LinesOfAPipeAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "[1]\n2", 5), 5);
  LineReader reader({"/dev/fd/" + std::to_string(ends[0])}, {.at_once = true});
  LineChunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "[1]\n");
  ASSERT_EQ(write(ends[1], "3\n", 2), 2);
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.bytes(), "23\n");
  close(ends[1]);
  EXPECT_FALSE(reader.next(chunk));
  close(ends[0]);
}

}  // namespace
}  // namespace bloomery
