#include "apps/openwebtext/common.h"

#include "base/error.h"
#include "text/input/line_reader.h"

namespace bloomery {

bool read_words(const Arguments& arguments, const std::string& usage, std::size_t least,
                std::size_t most, Words& words, std::ostream& out) {
  OptionTable table;
  table.section("files");
  table.add("files", words.words, "Files, in the order of the usage line.").positional();
  table.add("overwrite", words.overwrite, "Replace existing output.");
  return read_options(table, arguments, out, usage, [&]() -> std::vector<std::string> {
    if (words.words.size() >= least && words.words.size() <= most) return {};
    return {usage.substr(0, usage.find('\n'))};
  });
}

void for_each_line(const std::vector<std::string>& files,
                   const std::function<void(std::string_view)>& visit) {
  LineReader reader(files, {.max_line_bytes = std::size_t{1} << 30, .format = LineFormat::text});
  LineChunk chunk;
  while (reader.next(chunk)) {
    const std::string_view text = chunk.bytes();
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view line = next_line(text, at);
      if (!is_blank(line)) visit(line);
    }
  }
}

void check_output(const std::string& path, bool overwrite) {
  if (!overwrite) refuse_to_overwrite({path});
}

}  // namespace bloomery
