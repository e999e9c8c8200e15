#include "text/transform/transform_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/number_text.h"
#include "text/input/line_format.h"
#include "text/transform/escape.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

// The first characters, line breaks as spaces, so that a sample is a line.
std::string beginning_of(std::string_view text) {
  constexpr std::size_t kBytes = 120;
  std::string beginning(text.substr(0, kBytes));
  beginning.resize(valid_utf8_prefix(beginning));
  std::ranges::replace_if(
      beginning, [](char c) { return c >= 0 && c < ' '; }, ' ');
  return beginning;
}

Json json_of(const TransformReport::Reason& reason) {
  Json samples = Json::array();
  for (const DroppedSample& sample : reason.samples) {
    samples.push_back({{"file", sample.file},
                       {sample.is_row ? "row" : "offset", sample.offset},
                       {"text", sample.beginning}});
  }
  return {{"count", reason.count}, {"samples", samples}};
}

TransformReport::Reason reason_of(const Json& entry) {
  TransformReport::Reason reason;
  entry.at("count").get_to(reason.count);
  for (const Json& sample : entry.at("samples")) {
    const bool is_row = sample.contains("row");
    reason.samples.push_back(
        {{sample.at("file"), sample.at(is_row ? "row" : "offset"), is_row}, sample.at("text")});
  }
  return reason;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

void TransformReport::Reason::add(const SamplePlace& place, std::string_view text) {
  if (static_cast<std::size_t>(count++) >= kSamples) return;
  samples.push_back(
      {{escape_invalid_utf8(place.file), place.offset, place.is_row}, beginning_of(text)});
}

void TransformReport::Reason::add(const Reason& next) {
  count += next.count;
  for (const DroppedSample& sample : next.samples) {
    if (samples.size() < kSamples) samples.push_back(sample);
  }
}

void TransformReport::drop(const std::string& reason, const SamplePlace& place,
                           std::string_view text) {
  dropped[reason].add(place, text);
}

void TransformReport::add(const TransformReport& next) {
  documents += next.documents;
  kept += next.kept;
  changed += next.changed;
  text_bytes += next.text_bytes;
  kept_text_bytes += next.kept_text_bytes;
  for (const auto& [name, reason] : next.dropped) dropped[name].add(reason);
  bad_lines.add(next.bad_lines);
  for (const auto& [name, count] : next.parts) parts[name] += count;
}

std::string TransformReport::json(const std::string& run) const {
  Json reasons = Json::object();
  for (const auto& [name, reason] : dropped) reasons[name] = json_of(reason);
  Json all = {{"documents", documents},
              {"kept", kept},
              {"changed", changed},
              {"text_bytes", text_bytes},
              {"kept_text_bytes", kept_text_bytes},
              {"dropped", reasons},
              {"bad_lines", json_of(bad_lines)},
              {"parts", Json(parts)}};
  if (!run.empty()) all["run"] = Json::parse(run);
  return all.dump(1, ' ', false, Json::error_handler_t::replace);
}

TransformReport TransformReport::parse(const std::string& text) try {
  const Json all = Json::parse(text);
  TransformReport report;
  all.at("documents").get_to(report.documents);
  all.at("kept").get_to(report.kept);
  all.at("changed").get_to(report.changed);
  all.at("text_bytes").get_to(report.text_bytes);
  all.at("kept_text_bytes").get_to(report.kept_text_bytes);
  for (const auto& [name, entry] : all.at("dropped").items()) {
    report.dropped[name] = reason_of(entry);
  }
  if (all.contains("bad_lines")) {  // notes of earlier versions have none
    report.bad_lines = reason_of(all.at("bad_lines"));
  }
  all.at("parts").get_to(report.parts);
  return report;
} catch (const Json::exception& error) {
  throw Error(concat("no report of a step: ", error.what()));
}

std::string TransformReport::text(const std::string& what) const {
  std::string page =
      concat(what, ": kept ", grouped(kept), " of ", counted(documents, "document"), " (",
             fixed(percent(static_cast<double>(kept), static_cast<double>(documents)), 1), " %), ",
             size_text(static_cast<double>(kept_text_bytes)), " of ",
             size_text(static_cast<double>(text_bytes)), " of text");
  page += changed > 0 ? concat("; ", grouped(changed), " changed\n") : "\n";
  std::vector<std::pair<std::string, const Reason*>> reasons;
  for (const auto& [name, reason] : dropped) reasons.emplace_back(name, &reason);
  std::ranges::stable_sort(reasons, std::ranges::greater{},
                           [](const auto& entry) { return entry.second->count; });
  for (const auto& [name, reason] : reasons) {
    page += concat("  dropped ", grouped(reason->count), ": ", name, "\n");
    for (const DroppedSample& sample : reason->samples) {
      page += concat("    ", sample.file, ", ", line_place(sample.offset, sample.is_row), ": ",
                     sample.beginning, "\n");
    }
  }
  for (const auto& [name, count] : parts) {
    page += concat("  within documents: ", grouped(count), " ", name, "\n");
  }
  page += concat("  ", counted(bad_lines.count, "bad line"), " skipped\n");
  return page;
}

}  // namespace bloomery
