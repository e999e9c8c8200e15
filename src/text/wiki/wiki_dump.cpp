#include "text/wiki/wiki_dump.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "text/filter/repair.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kLongestPage = std::size_t{256} << 20;
constexpr std::string_view kEnd = "</page>";

// What stands in the first element of this name; nothing without one.
std::optional<std::string_view> element(std::string_view text, std::string_view name) {
  const std::string open = concat("<", name), close = concat("</", name, ">");
  for (std::size_t at = text.find(open); at != text.npos; at = text.find(open, at + 1)) {
    const std::size_t after = at + open.size();
    if (after >= text.size() || (text[after] != '>' && text[after] != ' ')) continue;
    const std::size_t begin = text.find('>', after);
    const std::size_t end = begin == text.npos ? text.npos : text.find(close, begin);
    if (end == text.npos) return std::nullopt;
    return text.substr(begin + 1, end - begin - 1);
  }
  return std::nullopt;
}

std::string unescaped(std::string_view text) {
  std::string result(text);
  decode_entities(result);
  return result;
}

}  // namespace

PageSource::PageSource(const std::string& file, const std::atomic<bool>* stop)
    : name_(shown_name(file)) {
  auto raw = std::make_unique<FileSource>(file);
  raw->stop_when(stop);
  raw_ = raw.get();
  source_ = decompressed(std::move(raw));
}

bool PageSource::next(LineChunk& chunk) {
  std::size_t whole = std::string::npos;
  while (!ended_ && (rest_.size() < kChunk || whole == std::string::npos)) {
    const std::size_t before = rest_.size();
    rest_.resize(before + kChunk);
    const std::size_t count = source_->read({rest_.data() + before, kChunk});
    rest_.resize(before + count);
    ended_ = count == 0;
    whole = rest_.rfind(kEnd);
    check(!first_ || rest_.size() < 3 || !rest_.starts_with("BZh"), name_,
          " is packed by bzip2; give it as `bzcat FILE | bloomery data extract-wiki --input -`");
    check(rest_.size() < kLongestPage, name_,
          " has no end of a <page> for 256 MiB; it is no dump of pages");
  }
  whole = rest_.rfind(kEnd);
  if (whole == std::string::npos) return false;
  whole += kEnd.size();
  chunk.buffer.assign(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(whole));
  chunk.used = whole;
  chunk.first_of_file = first_;
  chunk.input_position = raw_->position();
  first_ = false;
  rest_.erase(0, whole);
  return true;
}

std::vector<WikiPage> articles(std::string_view pages) {
  std::vector<WikiPage> found;
  for (std::size_t at = pages.find("<page>"); at != pages.npos; at = pages.find("<page>", at + 1)) {
    const std::size_t end = std::min(pages.find(kEnd, at), pages.size());
    const std::string_view bytes = pages.substr(at, end - at);
    const std::string repaired = is_utf8(bytes) ? std::string() : repair_utf8(bytes);
    const std::string_view page = repaired.empty() ? bytes : repaired;
    const auto title = element(page, "title"), space = element(page, "ns"),
               id = element(page, "id");
    const auto revision = element(page, "revision");
    const std::string_view head = page.substr(0, page.find("<revision>"));
    if (!title || !id || !revision || (space && *space != "0")) continue;
    if (head.find("<redirect") != head.npos) continue;
    const auto markup = element(*revision, "text"), revision_id = element(*revision, "id");
    if (!markup) continue;
    found.push_back({std::string(*id), std::string(revision_id.value_or("")), unescaped(*title),
                     unescaped(*markup)});
  }
  return found;
}

std::string base_url(std::string_view head) {
  const auto base = element(head, "base");
  return base ? std::string(base->substr(0, base->rfind('/'))) : std::string();
}

}  // namespace bloomery
