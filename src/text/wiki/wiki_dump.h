// The articles of a Wikipedia dump (pages-articles.xml).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/input/line_reader.h"

namespace bloomery {

// Chunks of whole <page> elements.
class PageSource : public ChunkSource {
 public:
  PageSource(const std::string& file, const std::atomic<bool>* stop);
  bool next(LineChunk& chunk) override;

 private:
  std::string name_;
  FileSource* raw_ = nullptr;  // of source_
  std::unique_ptr<ByteSource> source_;
  std::string rest_;
  bool ended_ = false, first_ = true;
};

struct WikiPage {
  std::string id, revision, title, markup;
};

// The articles among the pages of a chunk: those of the first namespace that do not only lead to
// another. Bytes that are not UTF-8 become U+FFFD.
std::vector<WikiPage> articles(std::string_view pages);

// "https://en.wikipedia.org/wiki" of the header before the first page; empty: there is none.
std::string base_url(std::string_view head);

}  // namespace bloomery
