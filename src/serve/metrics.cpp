#include "serve/metrics.h"

#include <fmt/core.h>

#include <algorithm>

namespace bloomery {
namespace {

std::vector<double> seconds() {
  return {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60};
}
std::vector<double> tokens() {
  return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000};
}

void head(std::string& out, const std::string& name, const char* type) {
  out += fmt::format("# TYPE {} {}\n", name, type);
}

// In quotes, as the format has it.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n') {
      safe += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') {
      safe += '\\';
    }
    safe += c;
  }
  return '"' + safe + '"';
}

}  // namespace

void Histogram::add(double value) {
  const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(place - bounds_.begin())];
  sum_ += value;
}

void Histogram::print(std::string& out, const std::string& name, const std::string& label) const {
  head(out, name, "histogram");
  std::int64_t total = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, label, bound, total);
  }
  out += fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, label, sum_, total);
}

ServerMetrics::ServerMetrics()
    : first_token_(seconds()),
      between_tokens_(seconds()),
      request_(seconds()),
      prompt_(tokens()),
      generated_(tokens()) {}

void ServerMetrics::first_token(double value) {
  const std::lock_guard lock(mutex_);
  first_token_.add(value);
}

void ServerMetrics::between_tokens(double value) {
  const std::lock_guard lock(mutex_);
  between_tokens_.add(value);
}

void ServerMetrics::request_done(double value, std::int64_t prompt_tokens,
                                 std::int64_t new_tokens) {
  const std::lock_guard lock(mutex_);
  request_.add(value);
  prompt_.add(static_cast<double>(prompt_tokens));
  generated_.add(static_cast<double>(new_tokens));
}

void ServerMetrics::sequence_ended(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++ended_[reason];
}

void ServerMetrics::answered(int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[status];
}

std::string ServerMetrics::text(const std::string& model, const Engine& engine) const {
  const std::lock_guard lock(mutex_);
  const EngineStatus& status = engine.status();
  const std::string label = "model_name=" + quoted(model);
  const auto pages = static_cast<double>(engine.num_pages());
  std::string out;
  const auto one = [&](const std::string& name, const char* type, double value) {
    head(out, name, type);
    out += fmt::format("{}{{{}}} {}\n", name, label, value);
  };
  const auto number = [](const std::atomic<std::int64_t>& value) {
    return static_cast<double>(value.load());
  };
  one("vllm:num_requests_running", "gauge", number(status.running));
  one("vllm:num_requests_waiting", "gauge", number(status.waiting));
  one("vllm:kv_cache_usage_perc", "gauge", number(status.pages_taken) / pages);
  one("vllm:prompt_tokens_total", "counter", number(status.prompt_tokens));
  one("vllm:generation_tokens_total", "counter", number(status.new_tokens));
  one("bloomery:engine_steps_total", "counter", number(status.steps));
  one("bloomery:requests_dropped_total", "counter", number(status.dropped));
  head(out, "vllm:request_success_total", "counter");
  for (const auto& [reason, count] : ended_) {
    out += fmt::format("vllm:request_success_total{{{},finished_reason={}}} {}\n", label,
                       quoted(reason), count);
  }
  head(out, "bloomery:http_answers_total", "counter");
  for (const auto& [code, count] : answers_) {
    out += fmt::format("bloomery:http_answers_total{{{},status=\"{}\"}} {}\n", label, code, count);
  }
  first_token_.print(out, "vllm:time_to_first_token_seconds", label);
  between_tokens_.print(out, "vllm:inter_token_latency_seconds", label);
  request_.print(out, "vllm:e2e_request_latency_seconds", label);
  prompt_.print(out, "vllm:request_prompt_tokens", label);
  generated_.print(out, "vllm:request_generation_tokens", label);
  return out;
}

}  // namespace bloomery
