#include "corpus/indexed_corpus.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

using Sequence = std::vector<TokenId>;
using Document = std::vector<Sequence>;

// An empty folder that disappears with the test.
class IndexedCorpusTest : public ::testing::Test {
 protected:
  IndexedCorpusTest() { std::filesystem::create_directory(folder_); }
  ~IndexedCorpusTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::vector<Document>& documents, TokenType type = TokenType::u16,
             CorpusFormat format = CorpusFormat::mmap) {
    IndexedWriter writer(prefix_, type, format);
    for (const Document& document : documents) {
      for (const Sequence& sequence : document) {
        writer.add_sequence(sequence);
      }
      writer.end_document();
    }
    writer.commit();
  }

  // Writes bytes over those of a file.
  template <class T>
  void patch(const std::filesystem::path& path, std::size_t offset, T value) {
    std::string bytes = read_file(path);
    ASSERT_LE(offset + sizeof(T), bytes.size());
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
    replace(path, bytes);
  }
  static void replace(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;  // without waiting for the disk
  }
  void resize(const std::filesystem::path& path, std::ptrdiff_t change) {
    const auto size = static_cast<std::ptrdiff_t>(std::filesystem::file_size(path));
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size + change));
  }

  // Opening must fail with a message that has this part.
  void expect_refused(const std::string& part) {
    try {
      const IndexedCorpus corpus(prefix_);
      FAIL() << "opened; expected: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  std::ptrdiff_t num_files() const { return std::ssize(visible_names(folder_)); }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / concat("bloomery_corpus_test_", getpid());
  std::filesystem::path prefix_ = folder_ / "corpus";
  std::filesystem::path idx_ = folder_ / "corpus.idx", bin_ = folder_ / "corpus.bin";
};

const std::vector<Document> kDocuments = {{{1, 2, 3}}, {{4}, {5, 6}, {}}, {}, {{7, 8, 9, 10}}};

std::vector<Document> contents(const IndexedCorpus& corpus) {
  std::vector<Document> documents;
  for (std::int64_t d = 0; d < corpus.num_documents(); ++d) {
    documents.emplace_back();
    for (std::int64_t s = corpus.first_sequence(d); s < corpus.first_sequence(d + 1); ++s) {
      Sequence tokens(static_cast<std::size_t>(corpus.length(s)));
      corpus.read(s, 0, tokens);
      documents.back().push_back(tokens);
    }
  }
  return documents;
}

TEST_F(IndexedCorpusTest, EveryTypeAndFormatGivesBackWhatWasWritten) {
  for (const CorpusFormat format : {CorpusFormat::mmap, CorpusFormat::cached}) {
    for (std::uint64_t code = 1; code <= 8; ++code) {
      const TokenType type = *token_type_of_code(code);
      write(kDocuments, type, format);
      const IndexedCorpus corpus(prefix_);
      EXPECT_EQ(corpus.format(), format);
      EXPECT_EQ(corpus.type(), type);
      EXPECT_EQ(corpus.num_documents(), 4);
      EXPECT_EQ(corpus.num_empty_documents(), 1);
      EXPECT_EQ(corpus.num_sequences(), 5);
      EXPECT_EQ(corpus.num_tokens(), 10);
      EXPECT_EQ(corpus.num_uncounted_tokens(), 0);
      EXPECT_EQ(corpus.first_token(4), 6);
      EXPECT_EQ(corpus.first_token(5), 10);
      EXPECT_EQ(contents(corpus), kDocuments);
    }
  }
}

TEST_F(IndexedCorpusTest, PartsOfSequences) {
  Sequence tokens(100000);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<TokenId>(i % 60000);
  }
  write({{tokens}, {{1, 2}}});
  const IndexedCorpus corpus(prefix_);
  Sequence part(70000);  // more than the buffer of a conversion
  corpus.read(0, 29000, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), tokens.begin() + 29000));
  EXPECT_THROW(corpus.read(0, 40000, part), Error);
  EXPECT_THROW(corpus.read(0, -1, part), Error);
  EXPECT_THROW(corpus.read_bin(100001, part), Error);
  EXPECT_THROW(corpus.read_bin(-1, part), Error);
}

TEST_F(IndexedCorpusTest, EmptyCorpus) {
  write({});
  const IndexedCorpus corpus(prefix_);
  EXPECT_EQ(corpus.num_documents(), 0);
  EXPECT_EQ(corpus.num_tokens(), 0);
  EXPECT_EQ(corpus.first_sequence(0), 0);
}

// The bytes of the format, one by one.
TEST_F(IndexedCorpusTest, BytesOfTheMmapFormat) {
  write({{{258, 3}}, {{4}}});
  EXPECT_EQ(read_file(bin_), std::string("\x02\x01\x03\x00\x04\x00", 6));
  const auto number = [](std::uint64_t value, int bytes) {
    return std::string(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(bytes));
  };
  EXPECT_EQ(read_file(idx_), std::string("MMIDIDX\0\0", 9) + number(1, 8) + number(8, 1) +
                                 number(2, 8) + number(3, 8) + number(2, 4) + number(1, 4) +
                                 number(0, 8) + number(4, 8) + number(0, 8) + number(1, 8) +
                                 number(2, 8));
}

TEST_F(IndexedCorpusTest, BytesOfTheOlderFormat) {
  write({{{258, 3}, {4}}}, TokenType::i32, CorpusFormat::lazy);
  std::string expected("TNTIDX\0\0", 8);
  for (const std::int64_t field :
       {1, 4, 4, 2, 2, 2,  // version, type, its size, items, sizes, marks
        0, 1, 2,           // dimensions before each item
        0, 2, 3,           // tokens before each item
        2, 1,              // sizes
        0, 2}) {           // marks
    expected.append(reinterpret_cast<const char*>(&field), 8);
  }
  EXPECT_EQ(read_file(idx_), expected);
}

// A corpus made by Megatron, copied through reader and writer.
TEST_F(IndexedCorpusTest, MegatronsCorpusByteForByte) {
  const auto folder = shared_data("megatron-indexed/openwebtext-1000");
  if (!folder) GTEST_SKIP() << kNoSharedData;
  const std::filesystem::path original = *folder / "meg-gpt2-openwebtext_text_document";
  const IndexedCorpus corpus(original);
  EXPECT_EQ(corpus.num_documents(), 1000);
  EXPECT_EQ(corpus.num_tokens(), 1361845);
  EXPECT_EQ(corpus.num_uncounted_tokens(), 0);
  IndexedWriter copy(prefix_, corpus.type());
  copy.append(corpus, 0, 300);
  copy.append(corpus, 300, 1000);
  copy.commit();
  EXPECT_EQ(read_file(idx_), read_file(idx_path(original)));
  EXPECT_EQ(read_file(bin_), read_file(bin_path(original)));
  write(contents(corpus));
  EXPECT_EQ(read_file(idx_), read_file(idx_path(original)));
  EXPECT_EQ(read_file(bin_), read_file(bin_path(original)));
}

TEST_F(IndexedCorpusTest, BatchesOfWorkers) {
  IndexedWriter writer(prefix_, TokenType::u8);
  EncodedBatch batch{.tokens = {std::byte{1}, std::byte{2}, std::byte{3}},
                     .lengths = {1, 2},
                     .document_sequences = {0, 2}};
  writer.append(batch);
  writer.append(EncodedBatch{});
  batch.document_sequences = {1, 1};
  writer.append(batch);
  EXPECT_EQ(writer.num_tokens(), 6);
  EXPECT_EQ(writer.num_sequences(), 4);
  EXPECT_EQ(writer.num_documents(), 4);
  writer.commit();
  EXPECT_EQ(contents(IndexedCorpus(prefix_)),
            (std::vector<Document>{{}, {{1}, {2, 3}}, {{1}}, {{2, 3}}}));
}

TEST_F(IndexedCorpusTest, TypesConvertWhenAppended) {
  write({{{1, 65535}}, {{2}}}, TokenType::u16);
  const IndexedCorpus source(prefix_);
  IndexedWriter wide(folder_ / "wide", TokenType::i32);
  wide.append(source);
  wide.commit();
  EXPECT_EQ(contents(IndexedCorpus(folder_ / "wide")), contents(source));
  IndexedWriter narrow(folder_ / "narrow", TokenType::u8);
  EXPECT_THROW(narrow.append(source), Error);
}

TEST_F(IndexedCorpusTest, IdsBeyondTheType) {
  IndexedWriter writer(prefix_, TokenType::u16);
  const Sequence large = {70000}, negative = {-1};
  EXPECT_THROW(writer.add_sequence(large), Error);
  EXPECT_THROW(writer.add_sequence(negative), Error);
}

TEST_F(IndexedCorpusTest, ValuesThatAreNoIds) {
  write({{{1}}}, TokenType::i64);
  patch(bin_, 0, std::int64_t{1} << 31);
  EXPECT_THROW(contents(IndexedCorpus(prefix_)), Error);
  write({{{1}}}, TokenType::f64);
  for (const double value : {0.5, 1e10, -1e10, std::nan("")}) {
    patch(bin_, 0, value);
    EXPECT_THROW(contents(IndexedCorpus(prefix_)), Error) << value;
  }
  patch(bin_, 0, 7.0);
  EXPECT_EQ(contents(IndexedCorpus(prefix_)), (std::vector<Document>{{{7}}}));
}

TEST_F(IndexedCorpusTest, TokensThatNoSequenceCounts) {
  write(kDocuments);
  resize(bin_, 3 * 2);
  EXPECT_EQ(IndexedCorpus(prefix_).num_uncounted_tokens(), 3);
  EXPECT_EQ(contents(IndexedCorpus(prefix_)), kDocuments);
  resize(bin_, -1);
  expect_refused("no whole number of tokens");
}

TEST_F(IndexedCorpusTest, MissingFiles) {
  expect_refused("corpus.idx: No such file");
  write(kDocuments);
  std::filesystem::remove(bin_);
  expect_refused("corpus.bin: No such file");
}

TEST_F(IndexedCorpusTest, DamagedHeaders) {
  write(kDocuments);
  const std::string good = read_file(idx_);
  patch(idx_, 0, 'X');
  expect_refused("is not the index of a corpus");
  replace(idx_, "");
  expect_refused("it is empty");
  replace(idx_, good);
  patch(idx_, 9, std::uint64_t{2});
  expect_refused("version 2");
  replace(idx_, good);
  for (const int code : {0, 9, 255}) {
    patch(idx_, 17, static_cast<std::uint8_t>(code));
    expect_refused(concat("unknown token type ", code));
  }
  replace(idx_, good.substr(0, 20));
  expect_refused("do not hold the header");
  for (const std::size_t at : {std::size_t{18}, std::size_t{26}}) {
    for (const std::uint64_t count : {~std::uint64_t{0}, std::uint64_t{1} << 61}) {
      replace(idx_, good);
      patch(idx_, at, count);
      expect_refused("is cut short");
    }
  }
}

TEST_F(IndexedCorpusTest, FilesOfTheWrongSize) {
  write(kDocuments);
  const std::string good = read_file(idx_);
  for (const std::size_t size : {good.size() - 1, good.size() - 8, std::size_t{34}}) {
    replace(idx_, good.substr(0, size));
    expect_refused("is cut short");
  }
  replace(idx_, good + "xx");
  expect_refused(concat("has ", good.size() + 2, " bytes"));
  replace(idx_, good + std::string(5, '\0'));
  expect_refused("multimodal");
  replace(idx_, good);
  resize(bin_, -2);
  expect_refused("shorter than the index says");
  resize(bin_, -18);
  expect_refused("shorter than the index says");
}

TEST_F(IndexedCorpusTest, DamagedArrays) {
  write(kDocuments);
  const std::string good = read_file(idx_);
  const std::size_t offsets = 34 + 5 * 4, marks = offsets + 5 * 8;
  const auto expect_after = [&](std::size_t at, auto value, const std::string& part) {
    replace(idx_, good);
    patch(idx_, at, value);
    expect_refused(part);
  };
  expect_after(34, std::int32_t{-1}, "sequence 0 has length -1");
  expect_after(34, std::int32_t{4},
               "sequence 1 starts at bytes 6, not where sequence 0 ends, at 8");
  expect_after(offsets, std::int64_t{2}, "the first sequence starts at 2");
  expect_after(offsets + 16, std::int64_t{9}, "sequence 2 starts at bytes 9");
  expect_after(offsets + 32, std::int64_t{-2}, "sequence 4 starts at bytes -2");
  expect_after(marks, std::int64_t{1}, "the first document starts at sequence 1");
  expect_after(marks + 8, std::int64_t{5}, "must not descend");
  expect_after(marks + 32, std::int64_t{4}, "the last document ends at sequence 4");
  expect_after(marks + 32, std::int64_t{1} << 40, "the last document ends");
}

TEST_F(IndexedCorpusTest, DamagedOlderFormat) {
  write(kDocuments, TokenType::i32, CorpusFormat::cached);
  const std::string good = read_file(idx_);
  const auto expect_after = [&](std::size_t field, std::int64_t value, const std::string& part) {
    replace(idx_, good);
    patch(idx_, 8 * field, value);
    expect_refused(part);
  };
  expect_after(1, 3, "version 3");
  expect_after(2, 77, "unknown token type 77");
  expect_after(3, 8, "gives its tokens 8 bytes");
  expect_after(4, 4, "dimensions in all");
  expect_after(6, 1 << 20, "is cut short");
  expect_after(8, 2, "is not a sequence");                // dimensions of item 1
  expect_after(7 + 6 + 1, 7, "sequence 1 starts");        // its first token
  expect_after(7 + 6 + 5, 99, "sequence 5 starts");       // the end
  expect_after(7 + 12, std::int64_t{1} << 33, "length");  // of item 0
  replace(idx_, good);
  resize(bin_, -4);
  expect_refused("shorter than the index says");
}

// The two floating-point codes were once the other way round.
TEST_F(IndexedCorpusTest, OldFloatCodes) {
  write(kDocuments, TokenType::f32, CorpusFormat::cached);
  patch(idx_, 16, std::int64_t{6});
  EXPECT_EQ(contents(IndexedCorpus(prefix_)), kDocuments);
}

// Damage at any byte is refused or leaves a corpus that can be read; it never crashes.
TEST_F(IndexedCorpusTest, RandomDamage) {
  std::mt19937 random(5);
  for (const CorpusFormat format : {CorpusFormat::mmap, CorpusFormat::cached}) {
    write(kDocuments, TokenType::i32, format);
    const std::string good = read_file(idx_);
    const std::int64_t tokens = IndexedCorpus(prefix_).num_tokens();
    int refused = 0;
    for (int trial = 0; trial < 300; ++trial) {
      std::string bad = good;
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
      std::ofstream(idx_, std::ios::binary) << bad;
      try {
        const IndexedCorpus corpus(prefix_);
        EXPECT_EQ(corpus.num_tokens(), tokens);  // only marks and the type can change unnoticed
        contents(corpus);
      } catch (const Error&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 200);
  }
}

TEST_F(IndexedCorpusTest, ManySequencesAreCheckedOnAllCores) {
  constexpr int kCount = 700000;
  IndexedWriter writer(prefix_, TokenType::u8);
  EncodedBatch batch;
  for (int i = 0; i < kCount; ++i) {
    batch.lengths.push_back(i % 3);
    batch.document_sequences.push_back(1);
  }
  batch.tokens.resize(
      static_cast<std::size_t>(std::accumulate(batch.lengths.begin(), batch.lengths.end(), 0)));
  writer.append(batch);
  writer.commit();
  EXPECT_EQ(IndexedCorpus(prefix_).num_tokens(), static_cast<std::int64_t>(batch.tokens.size()));
  patch(idx_, 34 + 4 * 600001, std::int32_t{500});
  expect_refused("starts at bytes");
}

TEST_F(IndexedCorpusTest, NothingRemainsWithoutCommit) {
  {
    IndexedWriter writer(prefix_, TokenType::u16);
    writer.add_sequence(Sequence(1000000, 5));
    writer.end_document();
    EXPECT_LE(num_files(), 1);  // where the file system has files without a name, none
  }
  EXPECT_EQ(num_files(), 0);
}

TEST_F(IndexedCorpusTest, AnOldPairStaysUntilTheNewOneIsComplete) {
  write(kDocuments);
  {
    IndexedWriter first(prefix_, TokenType::i32), second(prefix_, TokenType::u8);
    first.add_sequence(Sequence{1});
    first.end_document();
    second.add_sequence(Sequence{2});
    second.end_document();
    EXPECT_EQ(contents(IndexedCorpus(prefix_)), kDocuments);
    second.commit();
    EXPECT_EQ(contents(IndexedCorpus(prefix_)), (std::vector<Document>{{{2}}}));
    first.commit();
  }
  EXPECT_EQ(contents(IndexedCorpus(prefix_)), (std::vector<Document>{{{1}}}));
  EXPECT_EQ(num_files(), 2);
}

TEST_F(IndexedCorpusTest, AFolderThatDoesNotExist) {
  try {
    const IndexedWriter writer(folder_ / "no" / "such", TokenType::u16);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is not a folder; create it"), std::string::npos);
  }
}

// A limit on the size of files, which acts like a full disk, while this object lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(IndexedCorpusTest, AFullDiskSaysWhatIsNeeded) {
  write(kDocuments);
  for (const rlim_t limit : {rlim_t{100}, rlim_t{2000000}}) {
    IndexedWriter writer(prefix_, TokenType::u16);
    const FileSizeLimit full(limit);
    try {
      writer.add_sequence(Sequence(1000000, 5));
      writer.end_document();
      writer.add_sequence(Sequence(1000, 5));
      writer.end_document();
      writer.commit();
      FAIL();
    } catch (const Error& error) {
      FAIL() << "not the fault of the input: " << error.what();
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("need at least 200"), std::string::npos) << text;
      EXPECT_NE(text.find("are free"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(contents(IndexedCorpus(prefix_)), kDocuments);
  EXPECT_EQ(num_files(), 2);
}

}  // namespace
}  // namespace bloomery
