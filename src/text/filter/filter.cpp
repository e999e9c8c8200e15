#include "text/filter/filter.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "config/option_table.h"
#include "text/filter/quality.h"
#include "text/filter/repair.h"
#include "text/filter/text_parts.h"
#include "text/filter/url_rules.h"
#include "text/input/byte_source.h"
#include "text/input/input_files.h"
#include "text/language/language.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr const char* kRules[] = {"gopher-repetition", "gopher-quality", "c4", "c4-any-line",
                                  "fineweb-quality"};

// Names of several rules stand for them.
std::vector<std::string> single_rules(const std::vector<std::string>& names) {
  std::vector<std::string> rules;
  for (const std::string& name : names) {
    if (name == "gopher" || name == "fineweb") {
      rules.insert(rules.end(), {"gopher-repetition", "gopher-quality"});
      if (name == "fineweb") rules.insert(rules.end(), {"c4-any-line", "fineweb-quality"});
    } else {
      rules.push_back(name);
    }
  }
  return rules;
}

FilterStep rule_step(const std::string& name) {
  if (name == "gopher-repetition") {
    return [](std::string& text, TransformReport&) { return gopher_repetition(text); };
  }
  if (name == "gopher-quality") {
    return [](std::string& text, TransformReport&) { return gopher_quality(text); };
  }
  if (name == "fineweb-quality") {
    return [](std::string& text, TransformReport&) { return fineweb_quality(text); };
  }
  return [rules = C4Rules{.line_needs_end = name == "c4"}](std::string& text,
                                                           TransformReport& report) {
    return c4_quality(text, rules, report.parts);
  };
}

FilterStep language_step(const std::vector<std::string>& languages) {
  return [languages](std::string& text, TransformReport&) -> std::string {
    const std::string found = language_of(text);
    if (std::ranges::find(languages, found) != languages.end()) return {};
    return found.empty() ? "language: no letters of a supported language" : "language: " + found;
  };
}

FilterStep length_step(std::int64_t least, std::int64_t most) {
  return [least, most](std::string& text, TransformReport&) -> std::string {
    const std::int64_t count = characters(text);
    if (count < least) return concat("length: under ", least, " characters");
    if (most > 0 && count > most) return concat("length: over ", most, " characters");
    return {};
  };
}

const char* fault_text(UrlFault fault) {
  switch (fault) {
    case UrlFault::domain:
      return "url: a site of the blacklist";
    case UrlFault::extension:
      return "url: a file that is no page";
    case UrlFault::too_short:
      return "url: 8 characters or fewer";
    case UrlFault::malformed:
      return "url: not one of the web";
    case UrlFault::none:
      break;
  }
  return "";
}

// Looks at the URL before the text.
class FilterTransform : public LineTransform {
 public:
  FilterTransform(std::vector<FilterStep> steps, std::string key, std::vector<std::string> files)
      : steps_(std::move(steps)), key_(std::move(key)), files_(std::move(files)) {}

  void block(bool openwebtext, std::vector<std::string> domains) {
    looks_at_urls_ = true;
    openwebtext_ = openwebtext;
    domains_ = std::move(domains);
  }

  void apply(const LineChunk& chunk, const DocumentLine& line, Transformed& out) override {
    std::string reason = looks_at_urls_ ? url_reason(line.texts[1]) : std::string();
    text_ = line.texts[0];
    for (std::size_t i = 0; i < steps_.size() && reason.empty(); ++i) {
      reason = steps_[i](text_, out.report);
    }
    if (!reason.empty()) return out.drop(line, key_, reason, shown_name(files_[chunk.file]));
    if (text_ == line.texts[0]) return out.keep(line, key_);
    ++out.report.changed;
    out.keep_with(line, key_, text_);
  }

 private:
  std::string url_reason(std::string_view url) const {
    if (openwebtext_) {
      const UrlFault fault = openwebtext_fault(url);
      if (fault != UrlFault::none) return fault_text(fault);
    }
    return is_within(host_of(url), domains_) ? "url: a blocked domain" : "";
  }

  const std::vector<FilterStep> steps_;
  const std::string key_;
  const std::vector<std::string> files_;
  bool looks_at_urls_ = false, openwebtext_ = false;
  std::vector<std::string> domains_;
  std::string text_;
};

std::vector<std::string> read_domains(const std::string& path) {
  std::vector<std::string> domains;
  if (path.empty()) return domains;
  const std::string text = read_file(path);
  for (const std::string_view line : split_lines(text)) {
    const std::string_view domain = trim(line);
    if (!domain.empty() && !domain.starts_with('#')) domains.push_back(host_of(domain));
  }
  std::ranges::sort(domains);
  return domains;
}

std::string settings_text(const FilterOptions& o, const std::string& name) {
  std::string text =
      concat(name, ": url ", o.url_key, " ", o.openwebtext_urls, " ",
             input_identity(o.blocked_domains), ", repair ", o.repair, ", lines ", o.join_lines,
             ", characters ", o.min_characters, " to ", o.max_characters, ", languages");
  for (const std::string& language : o.languages) text += " " + language;
  text += ", rules";
  for (const std::string& rule : single_rules(o.rules)) text += " " + rule;
  return concat(text, ", key ", o.json_keys[0], ", format ", static_cast<int>(o.input_format),
                ", longest ", o.max_document_bytes, ", dropped ", o.keep_dropped);
}

void describe_output(OptionTable& t, FilterOptions& o) {
  t.section("output");
  t.add("output", o.output, "Output folder for NAME.jsonl of each input and report.json.")
      .required();
  t.add("keep-dropped", o.keep_dropped, "Write dropped documents to NAME.dropped.jsonl.");
  t.add("overwrite", o.overwrite,
        "Replace existing output and start over. Without it an interrupted run continues.");
  t.section("running");
  describe_workers(t, o);
}

}  // namespace

void describe_clean(OptionTable& t, FilterOptions& o) {
  describe_lines(t, o, "JSON key of the text.");
  t.section("cleaning");
  t.add("repair", o.repair,
        "Repair mojibake, HTML entities, control characters, ligatures and curly quotes, then "
        "normalize to NFC.")
      .off("Leave broken text as it is.");
  t.add("join-lines", o.join_lines,
        "Replace runs of spaces, and line breaks after a word, with one space.");
  describe_output(t, o);
}

void describe_filter(OptionTable& t, FilterOptions& o) {
  describe_lines(t, o, "JSON key of the text.");
  t.section("URLs");
  t.add("url-key", o.url_key, "JSON key of the URL; empty: URLs are not checked.");
  t.add("openwebtext-urls", o.openwebtext_urls,
        "Drop URLs that Megatron's blacklist_urls drops: sites without prose, files, malformed "
        "URLs.");
  t.add("blocked-domains", o.blocked_domains,
        "File of blocked domains, one per line; subdomains are blocked too.");
  t.section("rules, in this order");
  t.add("min-characters", o.min_characters,
        "Minimum document length; shorter documents are dropped.", at_least(0));
  t.add("max-characters", o.max_characters, "Maximum document length; 0: no limit.", at_least(0));
  t.add("languages", o.languages, "Keep documents in these languages only (ISO 639-1: en de ...).")
      .alias("language");
  t.add("rules", o.rules,
        "Rule sets, applied in this order: gopher-repetition, gopher-quality, c4, c4-any-line (c4 "
        "without its line-end rule), fineweb-quality. gopher is short for the first two, fineweb "
        "for FineWeb's whole chain.");
  describe_output(t, o);
}

std::vector<std::string> problems(const FilterOptions& o) {
  std::vector<std::string> found;
  if (o.json_keys.size() != 1) found.push_back("--json-keys: one key, the one of the text");
  for (const std::string& rule : single_rules(o.rules)) {
    if (std::ranges::find(kRules, rule) == std::end(kRules)) {
      found.push_back("--rules: there is no '" + rule + "'; --help has their names");
    }
  }
  for (const std::string& language : o.languages) {
    if (std::ranges::find(known_languages(), language) == known_languages().end()) {
      found.push_back("--languages: '" + language + "' is not a supported language");
    }
  }
  if (o.url_key.empty() && (o.openwebtext_urls || !o.blocked_domains.empty())) {
    found.push_back("--url-key must name the key of the URL");
  }
  const bool urls = o.openwebtext_urls || !o.blocked_domains.empty();
  if (!urls && !o.repair && !o.join_lines && o.rules.empty() && o.languages.empty() &&
      o.min_characters == 0 && o.max_characters == 0) {
    found.push_back("nothing to do: give at least one rule; --help has them");
  }
  return found;
}

std::vector<FilterStep> filter_steps(const FilterOptions& o) {
  std::vector<FilterStep> steps;
  if (o.repair) {
    steps.push_back([](std::string& text, TransformReport&) {
      repair_text(text);
      return std::string();
    });
  }
  if (o.join_lines) {
    steps.push_back([](std::string& text, TransformReport&) {
      join_lines(text);
      return std::string();
    });
  }
  if (o.min_characters > 0 || o.max_characters > 0) {
    steps.push_back(length_step(o.min_characters, o.max_characters));
  }
  if (!o.languages.empty()) steps.push_back(language_step(o.languages));
  for (const std::string& rule : single_rules(o.rules)) steps.push_back(rule_step(rule));
  return steps;
}

std::unique_ptr<LineTransform> make_filter_transform(std::vector<FilterStep> steps,
                                                     const std::string& key,
                                                     const std::vector<std::string>& files) {
  return std::make_unique<FilterTransform>(std::move(steps), key, files);
}

FilterSummary filter(const FilterOptions& options, const std::string& name,
                     const LineCaller& caller) {
  const std::vector<std::string> files = input_files(options.input);
  const std::vector<std::string> domains = read_domains(options.blocked_domains);
  const TransformOutputs outputs(jobs_in(options.output, files, options.keep_dropped),
                                 std::filesystem::path(options.output) / "report.json",
                                 {settings_text(options, name), options.overwrite});
  if (const auto report = outputs.finished()) return {.report = *report, .was_finished = true};
  LineOptions lines = options;
  const bool urls = options.openwebtext_urls || !domains.empty();
  if (urls) lines.json_keys.push_back(options.url_key);
  const TransformResult result =
      transform_files(lines, caller, outputs.jobs(), outputs.settings(), [&] {
        auto transform =
            std::make_unique<FilterTransform>(filter_steps(options), options.json_keys[0], files);
        if (urls) transform->block(options.openwebtext_urls, domains);
        return transform;
      });
  if (result.complete) outputs.finish(result.sum());
  return {.report = result.sum(), .interrupted = !result.complete};
}

bool join_lines(std::string& text) {
  std::string out;
  bool behind_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    std::size_t end = at + static_cast<std::size_t>(next.length);
    if (next.code == ' ') {
      end = std::min(text.find_first_not_of(' ', at), text.size());
      out += ' ';
    } else if (next.code == '\n' && behind_word) {
      end = std::min(text.find_first_not_of('\n', at), text.size());
      if (end < text.size() && text[end] == ' ') ++end;
      out += ' ';
    } else {
      out.append(text, at, end - at);
    }
    behind_word = (kLetter | kNumber).contains(char_class(next.code)) || next.code == '_';
    at = end;
  }
  const bool changed = out != text;
  if (changed) text = std::move(out);
  return changed;
}

}  // namespace bloomery
