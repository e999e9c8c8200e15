#include "samples/instruct/encode_records.h"

#include <algorithm>
#include <atomic>
#include <ctime>

#include "base/error.h"
#include "base/md5.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "samples/index_files.h"
#include "samples/instruct/record_source.h"
#include "text/lines/line_engine.h"
#include "tokenizer/tokenizer_hash.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// Of the encoding: another one makes other entries.
constexpr int kVersion = 1;

struct EncodedChunk {
  struct Fault {
    std::int64_t line = 0;  // of the chunk
    std::string why;
  };
  std::vector<InstructExample> examples;
  std::vector<Fault> left_out;
  std::optional<Fault> bad;  // behind it nothing was read
  std::int64_t lines = 0;
};

void encode_chunk(ExampleMaker& maker, std::string_view text, EncodedChunk& out) {
  out = {};
  for (std::size_t begin = 0; begin < text.size() && !out.bad; ++out.lines) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string record(text.substr(begin, end - begin));
    begin = end + 1;
    if (record.find_first_not_of(" \t\r\n") == record.npos) {
      continue;
    }
    try {
      maker.make(record, out.examples);
    } catch (const UnmaskableRecord& error) {
      out.left_out.push_back({out.lines, error.what()});
    } catch (const Error& error) {
      out.bad = {out.lines, error.what()};
    }
  }
}

// What chunks become, in their order.
class Encoding {
 public:
  Encoding(const std::vector<std::string>& files, const fs::path& stem)
      : files_(files), source_(files), writer_(stem) {}

  void run(const RecordEncoding& how) {
    const LineEngineOptions engine{
        .streams = {&source_}, .workers = usable_cores(), .stop = &stop_};
    std::vector<EncodedChunk> chunks(num_slots(engine));
    run_line_engine(engine, {.make_worker = [&](std::size_t) -> ChunkWork {
                               return [&, maker = std::make_shared<ExampleMaker>(
                                              how.options, how.tokenizer, how.how)](
                                          const LineChunk& lines, std::size_t slot) {
                                 encode_chunk(*maker, lines.bytes(), chunks[slot]);
                               };
                             },
                             .take = [&](std::size_t, const LineChunk& lines,
                                         std::size_t slot) { take(lines, chunks[slot]); },
                             .go_on = [] { return true; }});
    writer_.commit(left_out_);
  }

 private:
  void take(const LineChunk& lines, const EncodedChunk& chunk) {
    line_ = lines.first_of_file ? 0 : line_;
    for (const EncodedChunk::Fault& fault : chunk.left_out) {
      if (left_out_.count++ == 0) {
        left_out_.reason = fault.why;
      }
      if (left_out_.first.size() < LeftOutRecords::kNamed) {
        left_out_.first.push_back({lines.file, source_.place(lines.file, line_ + fault.line)});
      }
    }
    check(!chunk.bad, shown_name(files_[lines.file]), ", ",
          chunk.bad ? source_.place(lines.file, line_ + chunk.bad->line) : "", ": ",
          chunk.bad ? chunk.bad->why : "");
    for (const InstructExample& example : chunk.examples) {
      writer_.add(example);
    }
    line_ += chunk.lines;
  }

  const std::vector<std::string>& files_;
  RecordSource source_;
  EncodedRecordsWriter writer_;
  LeftOutRecords left_out_;
  std::atomic<bool> stop_ = false;
  std::int64_t line_ = 0;  // of the file at hand
};

std::string hash_of_file(const std::string& path) {
  FileSource file(path);
  RunningXxh3 hash;
  std::vector<char> piece(1 << 20);
  while (const std::size_t count = file.read(piece)) {
    hash.add(std::as_bytes(std::span(piece).first(count)));
  }
  return hash_text(hash.value());
}

std::string hashed(std::string_view text) {
  return concat(text.size(), " ", hash_text(xxh3(text)));
}

// A template that shows the date gives other texts tomorrow.
std::string day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return concat(parts.tm_year + 1900, "-", parts.tm_mon + 1, "-", parts.tm_mday);
}

// How the tokenizer frames a text, beyond what its hash says: its own tokens around it, and what
// templates know of it.
std::string framing(const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder({.add_special_tokens = true})->encode("0", ids);
  std::string all;
  for (const TokenId id : ids) {
    all += concat(id, " ");
  }
  for (const jinja::Input& variable : token_variables(tokenizer)) {
    all += concat(variable.name, "=", variable.json, "\n");
  }
  return hashed(all);
}

std::string contents(const RecordEncoding& encoding, const std::vector<std::string>& files) {
  const InstructOptions& o = encoding.options;
  const RecordTemplate& how = encoding.how;
  std::string all =
      concat("records ", kVersion, "\nformat ", static_cast<int>(o.format), "\nonly ",
             hashed(o.only), "\nloss on ", static_cast<int>(o.loss_on), "\nresponse ",
             hashed(o.response_template), "\ninstruction ", hashed(o.instruction_template),
             "\npairs ", o.pairs, "\ntemplate ", how.is_chat ? "chat " : "", hashed(how.source),
             "\ntokenizer ", tokenizer_hash(encoding.tokenizer, encoding.tokenizer.vocab_size()),
             " ", framing(encoding.tokenizer), "\n");
  if (how.source.find("strftime_now") != how.source.npos) {
    all += concat("day ", day(), "\n");
  }
  for (const std::string& file : files) {
    all += concat("file ", fs::file_size(file), " ", hash_of_file(file), "\n");
  }
  return all;
}

}  // namespace

std::shared_ptr<const EncodedRecords> encoded_records(const RecordEncoding& encoding,
                                                      const std::vector<std::string>& files,
                                                      const std::string& cache_folder,
                                                      const Log& log) {
  ExampleMaker(encoding.options, encoding.tokenizer, encoding.how);  // what is wrong there is first
  std::shared_ptr<const EncodedRecords> records;
  const auto build = [&](const fs::path& stem) { Encoding(files, stem).run(encoding); };
  const auto map = [&](const fs::path& stem) {
    records = std::make_shared<const EncodedRecords>(stem);
    for (const auto& place : records->left_out().first) {
      check(place.file < files.size(), stem.string(), ".json names a file that there is not");
    }
  };
  const auto is_regular = [](const std::string& path) { return fs::is_regular_file(path); };
  if (!std::ranges::all_of(files, is_regular)) {  // a pipe is read once
    const TemporaryFolder folder;
    build(folder.path() / "records");
    map(folder.path() / "records");
    return records;
  }
  const fs::path first = files.front();
  IndexFiles wanted;
  wanted.what = concat("the tokens of ", first.string(), files.size() > 1 ? " and others" : "");
  wanted.contents = contents(encoding, files);
  // Hidden, so that no pattern of data files means them.
  wanted.stem = concat(".", first.filename().string().substr(0, 100), ".",
                       md5_hex(wanted.contents).substr(0, 16));
  wanted.suffixes = {kEncodedSuffixes.begin(), kEncodedSuffixes.end()};
  wanted.places = index_places(first.parent_path(), cache_folder);
  wanted.build_places = wanted.places;
  if (!cache_folder.empty()) {
    std::swap(wanted.build_places[0], wanted.build_places[1]);
  }
  open_or_build(
      wanted,
      [&](const fs::path& stem) {
        log.info("encoding ", wanted.what, ", once for all ranks; they are kept in ", stem.string(),
                 "*");
        build(stem);
        check(contents(encoding, files) == wanted.contents, wanted.what,
              ": the files were changed while they were read; start again");
      },
      map, log);
  return records;
}

}  // namespace bloomery
