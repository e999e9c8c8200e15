// `blacklist_urls`, `group_duplicate_url` and `remove_group_duplicates`.
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "apps/openwebtext/common.h"
#include "apps/openwebtext/openwebtext.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_scan.h"
#include "base/number_text.h"
#include "text/filter/text_parts.h"
#include "text/filter/url_rules.h"
#include "text/input/input_files.h"
#include "text/input/json_line.h"
#include "text/openwebtext/url_groups.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

const char* label(UrlFault fault) {
  switch (fault) {
    case UrlFault::domain:
      return "[DOMAIN BLACKLIST]";
    case UrlFault::extension:
      return "[EXTENTION BLACKLIST]";
    case UrlFault::too_short:
      return "[SHORT URL]";
    case UrlFault::malformed:
      return "[MALFORMED URL]";
    case UrlFault::none:
      break;
  }
  return "[DUPLICATE URL]";
}

Json parse_line(std::string_view line, const std::string& file, std::size_t number) {
  check_json_depth(line);
  Json value = Json::parse(line, nullptr, false);
  check(value.is_object(), file, ", line ", number, ": no JSON object");
  return value;
}

std::string line_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int blacklist_urls(const Arguments& arguments, std::ostream& out) {
  Words words;
  if (!read_words(arguments,
                  "usage: bloomery blacklist_urls FOLDER OUTPUT\n\nexample:\n  bloomery "
                  "blacklist_urls urls clean_urls.txt\n",
                  2, 2, words, out)) {
    return 0;
  }
  check_output(words.words[1], words.overwrite);
  AtomicFile output(words.words[1]);
  std::unordered_set<std::string> seen;
  std::map<std::string, std::int64_t> counts;
  for_each_line(input_files({words.words[0] + "/*.txt"}), [&](std::string_view line) {
    const std::string url(trim(line));
    const UrlFault fault = openwebtext_fault(url);
    const bool fresh = fault == UrlFault::none && seen.insert(url).second;
    if (fresh) return output.write(url + "\n");
    out << label(fault) << ": " << url << '\n';
    ++counts[label(fault)];
  });
  output.commit();
  out << "kept " << seen.size() << " URLs";
  for (const auto& [name, count] : counts) out << ", " << name << " " << count;
  out << '\n';
  return 0;
}

int group_duplicate_url(const Arguments& arguments, std::ostream& out) {
  Words words;
  if (!read_words(arguments,
                  "usage: bloomery group_duplicate_url INPUT OUTPUT [THRESHOLD]\n\nexample:\n  "
                  "bloomery group_duplicate_url pairs.jsonl groups.jsonl 0.7\n",
                  2, 3, words, out)) {
    return 0;
  }
  check_output(words.words[1], words.overwrite);
  double threshold = 0.7;
  if (words.words.size() == 3) {
    std::size_t used = 0;
    try {
      threshold = std::stod(words.words[2], &used);
    } catch (const std::exception&) {
    }
    check(used == words.words[2].size(), "the threshold '", words.words[2], "' is no number");
  }
  UrlGroups groups;
  std::size_t number = 0;
  for_each_line({words.words[0]}, [&](std::string_view line) {
    const Json entry = parse_line(line, words.words[0], ++number);
    std::vector<std::string> together;
    for (const auto& [main, others] : entry.items()) {
      together.push_back(main);
      for (const Json& other : others) {
        for (const auto& [url, similarity] : other.items()) {
          check(similarity.is_number(), words.words[0], ", line ", number, ": '", url,
                "' has no similarity");
          if (similarity.get<double>() >= threshold) together.push_back(url);
        }
      }
    }
    groups.add(together);
  });
  std::size_t removed = 0, stay = 0;
  std::string text;
  for (const UrlGroups::Group& group : groups.groups()) {
    removed += group.ids.size() - 1;
    ++stay;
    text += line_of(Json{{std::to_string(group.index), group.ids}});
  }
  write_file(words.words[1], text);
  out << "out of " << removed + stay << " urls, only " << stay << " are unique and " << removed
      << " should be removed\n";
  return 0;
}

int remove_group_duplicates(const Arguments& arguments, std::ostream& out) {
  Words words;
  if (!read_words(arguments,
                  "usage: bloomery remove_group_duplicates GROUPS DATA OUTPUT\n\nexample:\n  "
                  "bloomery remove_group_duplicates groups.jsonl web.jsonl unique.jsonl\n",
                  3, 3, words, out)) {
    return 0;
  }
  check_output(words.words[2], words.overwrite);
  std::unordered_map<std::string, std::size_t> group_of;
  std::size_t number = 0;
  for_each_line({words.words[0]}, [&](std::string_view line) {
    const Json groups = parse_line(line, words.words[0], ++number);
    for (const auto& [index, ids] : groups.items()) {
      for (const Json& id : ids) group_of[id.get<std::string>()] = number;
    }
  });
  AtomicFile output(words.words[2]);
  JsonLineParser parser({"url"});
  std::unordered_set<std::size_t> met;  // groups whose first document was written
  std::size_t removed = 0, kept = 0;
  for_each_line({words.words[1]}, [&](std::string_view line) {
    const auto group =
        parser.parse(line) ? group_of.find(std::string(parser.text(0))) : group_of.end();
    if (group != group_of.end() && !met.insert(group->second).second) {
      ++removed;
      return;
    }
    ++kept;
    output.write(line);
    output.write("\n");
  });
  output.commit();
  out << "removed " << counted(removed, "document") << ", kept " << kept << '\n';
  return 0;
}

}  // namespace bloomery
