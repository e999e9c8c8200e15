#include "text/wiki/extract_wiki.h"

#include <atomic>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "text/input/input_files.h"
#include "text/lines/line_engine.h"
#include "text/lines/line_progress.h"
#include "text/transform/transform_files.h"
#include "text/wiki/wiki_dump.h"
#include "text/wiki/wiki_text.h"

namespace bloomery {
namespace {

// Files AA/wiki_00 to AA/wiki_99, AB/wiki_00 and so on.
class WikiFiles {
 public:
  WikiFiles(const std::filesystem::path& folder, std::int64_t file_bytes)
      : folder_(folder), file_bytes_(static_cast<std::uint64_t>(file_bytes)) {}

  void add(std::string_view line) {
    if (!file_) open();
    file_->write(line);
    written_ += line.size();
    if (written_ >= file_bytes_) close();
  }
  void close() {
    if (file_) file_->commit();
    file_ = nullptr;
    written_ = 0;
  }
  std::int64_t count() const { return number_; }

 private:
  void open() {
    const std::int64_t folder = number_ / 100;
    const std::string letters = {static_cast<char>('A' + folder / 26 % 26),
                                 static_cast<char>('A' + folder % 26)};
    check(folder < 26 * 26, "more than 67,600 files; give a larger --bytes");
    std::filesystem::create_directories(folder_ / letters);
    const std::int64_t in_folder = number_ % 100;
    file_ = std::make_unique<AtomicFile>(folder_ / letters /
                                         concat("wiki_", in_folder / 10, in_folder % 10));
    ++number_;
  }

  const std::filesystem::path folder_;
  const std::uint64_t file_bytes_;
  std::unique_ptr<AtomicFile> file_;
  std::uint64_t written_ = 0;
  std::int64_t number_ = 0;
};

struct Extracted {
  struct Article {
    WikiPage page;  // without markup
    std::string text;
  };
  std::vector<Article> articles;
  std::int64_t empty = 0;
};

void extract(const LineChunk& chunk, Extracted& out) {
  out = {};
  for (WikiPage& page : articles(chunk.bytes())) {
    std::string text = plain_wiki_text(page.markup);
    page.markup.clear();
    if (text.empty()) {
      ++out.empty;
    } else {
      out.articles.push_back({std::move(page), std::move(text)});
    }
  }
}

std::string line_of(const Extracted::Article& article, const std::string& base) {
  std::string line = "{\"id\": ";
  append_json_string(line, article.page.id);
  line += ", \"revid\": ";
  append_json_string(line, article.page.revision);
  line += ", \"url\": ";
  append_json_string(line, concat(base, "?curid=", article.page.id));
  line += ", \"title\": ";
  append_json_string(line, article.page.title);
  line += ", \"text\": ";
  append_json_string(line, article.text);
  return line + "}\n";
}

}  // namespace

ExtractWikiSummary extract_wiki(const ExtractWikiOptions& options, const LineCaller& caller) {
  const std::vector<std::string> input = input_files({options.input});
  std::atomic<bool> stop = false;
  PageSource source(input[0], &stop);
  LineProgress progress(caller.messages, {caller.terminal, 100'000, total_bytes(input)});
  StagedFolder folder(options.output);
  WikiFiles files(folder.path(), options.file_bytes);
  ExtractWikiSummary summary;
  std::string base;
  const LineOptions how{.workers = options.workers};
  const LineEngineOptions engine{.streams = {&source}, .workers = num_workers(how), .stop = &stop};
  std::vector<Extracted> results(num_slots(engine));
  summary.interrupted = !run_line_engine(
      engine, {.make_worker =
                   [&](std::size_t) {
                     return [&](const LineChunk& chunk, std::size_t slot) {
                       extract(chunk, results[slot]);
                     };
                   },
               .take =
                   [&](std::size_t, const LineChunk& chunk, std::size_t slot) {
                     if (chunk.first_of_file) {
                       base = base_url(chunk.bytes());
                       progress.opened(shown_name(input[0]));
                     }
                     for (const Extracted::Article& article : results[slot].articles) {
                       files.add(line_of(article, base));
                       summary.bytes += article.text.size();
                     }
                     const auto count = static_cast<std::int64_t>(results[slot].articles.size());
                     summary.articles += count;
                     summary.empty += results[slot].empty;
                     progress.advance(count, chunk.used, chunk.input_position);
                   },
               .ended = {},
               .go_on = caller.go_on});
  progress.finish();
  if (summary.interrupted) return summary;
  check(summary.articles > 0, shown_name(input[0]),
        " has no article; it should be a dump called pages-articles.xml");
  files.close();
  summary.files = files.count();
  folder.commit();
  return summary;
}

}  // namespace bloomery
