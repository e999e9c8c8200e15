#include "train/report/metrics_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "config/json_fields.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 6> kKinds = {"train", "validation", "test",
                                               "start", "checkpoint", "sample"};

// Of evaluations at the end of a run alone.
constexpr const char* kFinalSamples = "final_samples";

// "lm loss" as a key: lm_loss.
std::string key(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::int64_t count(const JsonFields& fields, const char* name) {
  const auto number = fields.get<std::int64_t>(name);
  check(number >= 0, name, " is negative");
  return number;
}

MetricsRow row_of(const JsonFields& fields) {
  const auto known = std::find(kKinds.begin(), kKinds.end(), fields.get<std::string>("kind"));
  check(known != kKinds.end(), "unknown kind");
  MetricsRow row;
  row.kind = static_cast<MetricsKind>(known - kKinds.begin());
  row.iteration = count(fields, "iteration");
  row.samples = count(fields, "samples");
  row.tokens = count(fields, "tokens");
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  row.time = fields.find<double>("time").value_or(kNoNumber);
  for (const std::string& name : fields.names()) {
    if (name == "kind" || name == "iteration" || name == "samples" || name == "tokens" ||
        name == "time") {
      continue;
    }
    if (name == "options") {
      const auto options = fields.get<JsonFields>(name);
      for (const std::string& option : options.names()) {
        row.options.emplace_back(option, options.get<std::string>(option));
      }
    } else if (fields.kind(name) == JsonFields::Kind::text) {
      row.texts.emplace_back(name, fields.get<std::string>(name));
    } else {
      row.values.emplace_back(name, fields.find<double>(name).value_or(kNoNumber));
    }
  }
  return row;
}

// By a process that starts at the iteration.
bool is_measured_again(const MetricsRow& row, std::int64_t iteration) {
  return iteration == 0 || row.iteration > iteration ||
         (row.iteration == iteration && row.value(kFinalSamples).has_value());
}

template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) take(line);
  }
}

// The earlier rows are safe in the other file before they leave this one.
void set_earlier_rows_aside(const std::filesystem::path& path, std::int64_t iteration) {
  if (!std::filesystem::is_regular_file(path)) return;  // a device may have no end
  std::string stays, goes;
  for_each_line(read_file(path), [&](std::string_view line) {
    const std::optional<MetricsRow> row = metrics_from_json(line);
    (row && !is_measured_again(*row, iteration) ? stays : goes).append(line).append("\n");
  });
  if (goes.empty()) return;
  const auto earlier = path.parent_path() / "metrics-earlier.jsonl";
  LogFile aside({.name = [earlier] { return earlier; }, .lines = true});
  aside.add(std::move(goes));
  check(aside.flush(), "cannot write to ", earlier.string());
  write_file(path, stays);
}

}  // namespace

std::optional<double> MetricsRow::value(std::string_view name) const {
  for (const auto& [own, value] : values) {
    if (own == name) return value;
  }
  return std::nullopt;
}

std::string MetricsRow::text(std::string_view name) const {
  for (const auto& [own, text] : texts) {
    if (own == name) return text;
  }
  return "";
}

MetricsRow metrics_row(const IterationReport& r, double now) {
  MetricsRow row{MetricsKind::train, r.iteration, r.consumed_samples, r.consumed_tokens, now, {}};
  const auto add = [&row](const std::string& name, double value) {
    row.values.emplace_back(name, value);
  };
  const auto add_if = [&add](const char* name, const auto& value) {
    if (value) add(name, static_cast<double>(*value));
  };
  for (const auto& [name, value] : r.losses) add(key(name), value);
  add("learning_rate", r.learning_rate);
  add("global_batch_size", static_cast<double>(r.global_batch));
  add("sequence_length", static_cast<double>(r.seq_length));
  add_if("loss_scale", r.loss_scale);
  add_if("grad_norm", r.grad_norm);
  add_if("num_zeros", r.num_zeros);
  add_if("params_norm", r.params_norm);
  add("skipped_iterations", static_cast<double>(r.skipped));
  add("nan_iterations", static_cast<double>(r.nans));
  add("iteration_ms", r.elapsed_ms);
  add("samples_per_second", r.samples_per_second);
  add("tokens_per_second", r.tokens_per_second);
  add("tokens_per_gpu_per_second", r.tokens_per_gpu_per_second);
  add("tflops", r.tflops);
  add_if("model_tflops", r.model_tflops);
  add_if("reserved_bytes", r.reserved_bytes);
  add_if("allocated_bytes", r.allocated_bytes);
  return row;
}

MetricsRow metrics_row(const EvaluationReport& report, std::int64_t consumed_samples,
                       std::int64_t consumed_tokens, double now) {
  MetricsRow row{report.test ? MetricsKind::test : MetricsKind::validation,
                 report.iteration,
                 consumed_samples,
                 consumed_tokens,
                 now,
                 {}};
  for (const auto& [name, value] : report.losses) {
    row.values.emplace_back(key(name), value);
    if (!is_preference_figure(name)) {
      row.values.emplace_back(key(name) + "_ppl", perplexity(value));
    }
  }
  if (report.final_samples > 0) {
    row.values.emplace_back(kFinalSamples, static_cast<double>(report.final_samples));
  }
  return row;
}

std::string to_json(const MetricsRow& row) {
  Json object;
  object["kind"] = kKinds[static_cast<std::size_t>(row.kind)];
  object["iteration"] = row.iteration;
  object["samples"] = row.samples;
  object["tokens"] = row.tokens;
  object["time"] = row.time;
  for (const auto& [name, value] : row.values) {
    constexpr double kExactIntegers = 9007199254740992.0;
    if (std::trunc(value) == value && std::abs(value) < kExactIntegers) {
      object[name] = static_cast<std::int64_t>(value);
    } else {
      object[name] = value;  // what is not finite becomes null
    }
  }
  for (const auto& [name, text] : row.texts) object[name] = text;
  for (const auto& [name, value] : row.options) object["options"][name] = value;
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<MetricsRow> metrics_from_json(std::string_view line) {
  try {
    return row_of(JsonFields(line, "row"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

MetricsHistory read_metrics(const std::filesystem::path& path) {
  MetricsHistory history;
  if (!std::filesystem::is_regular_file(path)) return history;
  for_each_line(read_file(path), [&history](std::string_view line) {
    std::optional<MetricsRow> row = metrics_from_json(line);
    if (!row) {
      ++history.damaged_lines;
      return;
    }
    if (row->kind == MetricsKind::start) {
      std::erase_if(history.rows, [&row](const MetricsRow& earlier) {
        return is_measured_again(earlier, row->iteration);
      });
    }
    history.rows.push_back(std::move(*row));
  });
  return history;
}

MetricsFile::MetricsFile(const std::filesystem::path& path, std::optional<std::int64_t> iteration,
                         const Warn& warn)
    : path_(path), file_({.name = [path] { return path; }, .lines = true, .warn = warn}) {
  try {
    if (iteration) set_earlier_rows_aside(path, *iteration);
  } catch (const std::exception& error) {
    if (warn) warn(concat(error.what(), "; the rows of an earlier run stay in ", path.string()));
  }
}

void MetricsFile::add(const MetricsRow& row) {
  file_.add(to_json(row) + "\n");
  file_.flush();
}

}  // namespace bloomery
