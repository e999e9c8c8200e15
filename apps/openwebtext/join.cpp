// `add_id` and `merge_jsons`.
#include <cstdio>

#include "apps/openwebtext/common.h"
#include "apps/openwebtext/openwebtext.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number_text.h"
#include "text/input/input_files.h"
#include "text/input/json_line.h"
#include "text/transform/transform_files.h"

namespace bloomery {

int add_id(const Arguments& arguments, std::ostream& out) {
  std::string input, output_file, prefix;
  std::int64_t log_interval = 100;
  bool overwrite = false;
  OptionTable table;
  table.section("files");
  table.add("input-file", input, "JSONL.").required();
  table.add("output-file", output_file, "Output file with an adlr_id in every object.").required();
  table.add("id-prefix", prefix, "Prefix of the ids: PREFIX-0000000001 and so on.").required();
  table.add("log-interval", log_interval, "No effect: there is no progress to log.", at_least(1));
  table.add("overwrite", overwrite, "Replace existing output.");
  if (!read_options(
          table, arguments, out,
          "usage: bloomery add_id --input-file FILE --output-file FILE --id-prefix P\n\nexample:\n "
          " bloomery add_id --input-file web.jsonl --output-file ids.jsonl --id-prefix web\n")) {
    return 0;
  }
  check_output(output_file, overwrite);
  AtomicFile output(output_file);
  JsonLineParser parser({}), old({"adlr_id"});
  std::int64_t documents = 0, bad = 0;
  for_each_line({input}, [&](std::string_view given) {
    if (!parser.parse(given)) {
      ++bad;
      return;
    }
    char number[24];
    std::snprintf(number, sizeof number, "-%010lld", static_cast<long long>(++documents));
    std::string line(given), quoted;
    append_json_string(quoted, prefix + number);
    if (old.parse(line)) {
      const auto at = static_cast<std::size_t>(old.token(0).data() - line.data());
      line.replace(at, old.token(0).size(), quoted);
    } else {
      const std::size_t end = line.rfind('}');
      const std::size_t last = line.find_last_not_of(" \t", end - 1);
      line.insert(end, concat(line[last] == '{' ? "" : ", ", "\"adlr_id\": ", quoted));
    }
    output.write(line + "\n");
  });
  output.commit();
  out << "wrote " << counted(documents, "document") << ", skipped " << counted(bad, "bad line")
      << '\n';
  return 0;
}

int merge_jsons(const Arguments& arguments, std::ostream& out) {
  std::string folder = ".", output_file = "merged_output.json";
  bool overwrite = false;
  OptionTable table;
  table.section("files");
  table.add("json_path", folder,
            "Folder whose *.json files are joined, in the order of their names.");
  table.add("output_file", output_file, "Output file.");
  table.add("overwrite", overwrite, "Replace existing output.");
  if (!read_options(
          table, arguments, out,
          "usage: bloomery merge_jsons [--json_path FOLDER] [--output_file FILE]\n\nexample:\n  "
          "bloomery merge_jsons --json_path pages --output_file merged.json\n")) {
    return 0;
  }
  check_output(output_file, overwrite);
  std::vector<std::string> files = input_files({folder + "/*.json"});
  std::erase_if(files, [&](const std::string& file) {
    std::error_code error;
    return std::filesystem::equivalent(file, output_file, error);
  });
  AtomicFile output(output_file);
  std::int64_t lines = 0;
  for_each_line(files, [&](std::string_view line) {
    output.write(line);
    output.write("\n");
    ++lines;
  });
  output.commit();
  out << "wrote " << counted(lines, "line") << " of "
      << counted(static_cast<std::int64_t>(files.size()), "file") << '\n';
  return 0;
}

}  // namespace bloomery
