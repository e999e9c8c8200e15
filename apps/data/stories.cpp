// `bloomery data stories`: tells stories of the embedded grammar, or scores texts by it.
#include "text/stories/stories.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/common/command_line.h"
#include "apps/data/common.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/file.h"
#include "text/input/document_lines.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

struct StoriesOptions {
  std::string output, score, json_key = "text", prompt_key;
  std::int64_t count = 10, first = 0, seed = 1234;
  bool per_story = false, json = false;
};

void describe(OptionTable& t, StoriesOptions& o) {
  t.section("writing stories");
  t.add("output", o.output,
        "Output file, one JSON object with the key text per line; none: print the stories.");
  t.add("count", o.count, "Number of stories.", between(1, 1e12));
  t.add("first", o.first, "Number of the first story, from 0.", between(0, 1e15));
  t.add("seed", o.seed, "Random seed; a story depends on the seed and its number.", at_least(0));
  t.section("scoring stories");
  t.add("score", o.score,
        "File of texts, JSONL or one text per line: count the stories of the grammar and print "
        "their -ln P.");
  t.add("json-key", o.json_key, "JSON key of the text.");
  t.add("prompt-key", o.prompt_key,
        "JSON key of the prompt before the text, as in `bloomery generate --json`; empty: none.");
  t.add("per-story", o.per_story, "Print the score of each text, and what is wrong with it.");
  t.section("report");
  t.add("json", o.json, "Print one JSON object instead of a page.");
}

std::vector<std::string> problems(const StoriesOptions& options) {
  if (options.output.empty() || options.score.empty()) return {};
  return {"give --output to write stories or --score to score them, not both"};
}

Json tell(const StoryTeller& teller, const StoriesOptions& options, std::ostream& out) {
  std::optional<AtomicFile> file;
  if (!options.output.empty()) file.emplace(options.output);
  double nll = 0;
  std::string lines;
  for (std::int64_t i = 0; i < options.count; ++i) {
    constexpr std::size_t kWriteBytes = 1 << 20;
    const std::string story = teller.story(static_cast<std::uint64_t>(options.seed),
                                           static_cast<std::uint64_t>(options.first + i));
    nll += teller.score(story).nll;
    if (file) {
      lines += Json{{"text", story}}.dump() + '\n';
    } else if (!options.json) {
      out << story << '\n';
    }
    if (lines.size() >= kWriteBytes) {
      file->write(lines);
      lines.clear();
    }
  }
  if (file) {
    file->write(lines);
    file->commit();
  }
  return {{"stories", options.count},
          {"seed", options.seed},
          {"first", options.first},
          {"nll", nll},
          {"entropy", teller.entropy()}};
}

// Calls with every text of the file, or with why a line has none.
void for_each_text(const StoriesOptions& options,
                   const std::function<void(std::string_view text, std::string_view fault)>& call) {
  constexpr LineReaderOptions kLimits;
  LineReader reader({options.score}, kLimits);
  LineChunk chunk;
  std::vector<std::string> keys{options.json_key};
  if (!options.prompt_key.empty()) keys.insert(keys.begin(), options.prompt_key);
  DocumentLines lines(keys, kLimits.max_line_bytes, "");
  while (reader.next(chunk)) {
    lines.for_each(chunk, [&](const DocumentLine& line) {
      std::string story;
      for (const std::string_view text : line.texts) story += text;  // the prompt's first
      call(story, line.fault);
    });
  }
}

Json score(const StoryTeller& teller, const StoriesOptions& options) {
  std::int64_t total = 0, accepted = 0;
  double nll = 0;
  Json scores = Json::array();
  for_each_text(options, [&](std::string_view text, std::string_view fault) {
    const StoryTeller::Score one =
        fault.empty() ? teller.score(text) : StoryTeller::Score{0, std::string(fault)};
    ++total;
    accepted += one.accepted() ? 1 : 0;
    nll += one.nll;
    if (options.per_story) {
      scores.push_back(one.accepted() ? Json{{"accepted", true}, {"nll", one.nll}}
                                      : Json{{"accepted", false}, {"fault", one.fault}});
    }
  });
  Json result = {
      {"total", total}, {"accepted", accepted}, {"nll", nll}, {"entropy", teller.entropy()}};
  if (options.per_story) result["stories"] = std::move(scores);
  return result;
}

void print_score(const Json& result, std::ostream& out) {
  out << std::fixed << std::setprecision(4);
  std::int64_t number = 0;
  for (const Json& one : result.value("stories", Json::array())) {
    out << ++number << ": ";
    if (one["accepted"].get<bool>()) {
      out << "accepted, -ln P " << one["nll"].get<double>() << '\n';
    } else {
      out << "rejected: " << one["fault"].get<std::string>() << '\n';
    }
  }
  const auto accepted = result["accepted"].get<std::int64_t>();
  const auto nll = result["nll"].get<double>();
  out << "accepted " << grouped(accepted) << " of " << grouped(result["total"]) << '\n'
      << "-ln P of the accepted: " << nll << " in all, "
      << nll / static_cast<double>(std::max<std::int64_t>(accepted, 1)) << " a story (entropy "
      << result["entropy"].get<double>() << ")\n";
}

}  // namespace

int data_stories(const Arguments& arguments, std::ostream& out) {
  StoriesOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery data stories [--output FILE --count N | --score FILE] "
          "[OPTIONS]\n\nWrites synthetic stories from a built-in grammar, or scores texts by "
          "it.\n\nexample:\n  bloomery data stories --output stories.jsonl --count 1000\n",
          [&] { return problems(options); })) {
    return 0;
  }
  const StoryTeller teller;
  const bool scores = !options.score.empty();
  const Json result = scores ? score(teller, options) : tell(teller, options, out);
  if (options.json) {
    out << result.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (scores) {
    print_score(result, out);
  } else if (!options.output.empty()) {
    out << options.output << ": " << grouped(options.count)
        << (options.count == 1 ? " story" : " stories") << ", seed " << options.seed << ", -ln P "
        << std::fixed << std::setprecision(4) << result["nll"].get<double>() << " in all\n";
  }
  return 0;
}

}  // namespace bloomery
