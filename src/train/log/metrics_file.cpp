#include "train/log/metrics_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kKinds = {"train", "validation", "test"};

// Of evaluations at the end of a run alone.
constexpr const char* kFinalSamples = "final_samples";

// "lm loss" as a key: lm_loss.
std::string key(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

bool read_integer(const Json& object, const char* name, std::int64_t& to) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return false;
  to = found->get<std::int64_t>();
  return to >= 0;
}

std::filesystem::path without_rows_after(const std::filesystem::path& path,
                                         std::int64_t iteration) {
  if (!std::filesystem::exists(path)) return path;
  const MetricsHistory history = read_metrics(path);
  const auto later = [iteration](const MetricsRow& row) {
    return row.iteration > iteration ||
           (row.iteration == iteration && row.value(kFinalSamples).has_value());
  };
  const bool clean =
      history.damaged_lines == 0 && std::none_of(history.rows.begin(), history.rows.end(), later);
  const std::string text = clean ? read_file(path) : "";
  if (clean && (text.empty() || text.back() == '\n')) return path;
  AtomicFile file(path);
  for (const MetricsRow& row : history.rows) {
    if (!later(row)) file.write(to_json(row) + "\n");
  }
  file.commit();
  return path;
}

}  // namespace

std::optional<double> MetricsRow::value(std::string_view name) const {
  for (const auto& [own, value] : values) {
    if (own == name) return value;
  }
  return std::nullopt;
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
  add("tokens_per_second", r.samples_per_second * static_cast<double>(r.seq_length));
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
    row.values.emplace_back(key(name) + "_ppl", perplexity(value));
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
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<MetricsRow> metrics_from_json(std::string_view line) {
  // Rows are flat: nested input, however deep, is no row and is not worth a recursion.
  if (line.find_first_of("{[", 1) != std::string_view::npos) return std::nullopt;
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  MetricsRow row;
  const auto kind = object.find("kind");
  if (kind == object.end() || !kind->is_string()) return std::nullopt;
  const auto known = std::find(kKinds.begin(), kKinds.end(), kind->get<std::string>());
  if (known == kKinds.end()) return std::nullopt;
  row.kind = static_cast<MetricsKind>(known - kKinds.begin());
  if (!read_integer(object, "iteration", row.iteration) ||
      !read_integer(object, "samples", row.samples) ||
      !read_integer(object, "tokens", row.tokens)) {
    return std::nullopt;
  }
  for (const auto& [name, value] : object.items()) {
    if (name == "kind" || name == "iteration" || name == "samples" || name == "tokens") continue;
    if (!value.is_number() && !value.is_null()) return std::nullopt;
    const double number =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    if (name == "time") {
      row.time = number;
    } else {
      row.values.emplace_back(name, number);
    }
  }
  return row;
}

MetricsHistory read_metrics(const std::filesystem::path& path) {
  MetricsHistory history;
  if (!std::filesystem::exists(path)) return history;
  const std::string text = read_file(path);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (std::optional<MetricsRow> row = metrics_from_json(line)) {
      history.rows.push_back(std::move(*row));
    } else {
      ++history.damaged_lines;
    }
  }
  return history;
}

MetricsFile::MetricsFile(const std::filesystem::path& path, std::int64_t iteration)
    : file_(without_rows_after(path, iteration)) {}

}  // namespace bloomery
